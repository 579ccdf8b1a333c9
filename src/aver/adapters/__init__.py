"""Agents of other libraries, gated and recorded: LangChain and LangGraph, PydanticAI, OpenAI Agents, Claude Agent SDK.

Each module hooks into one library where that library lets others in, and needs it installed (extras `langchain`,
`pydantic-ai`, `openai-agents`, `claude-agent-sdk`). All do the same with a tool call (`tool_calls`): ask the gate
before it, record what came of it after. A call that is refused does not run, and the model is told why.
"""

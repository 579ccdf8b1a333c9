"""Gate and record the agents of other libraries: LangChain and LangGraph, PydanticAI, OpenAI Agents, Claude Agent SDK.

Each module uses the extension points of one library. The library must be installed (extras `langchain`, `pydantic-ai`,
`openai-agents`, `claude-agent-sdk`). All modules treat a tool call in the same way (`tool_calls`): they ask the gate
before the call and record the result after it. A refused call does not run, and the model gets the reason.
"""

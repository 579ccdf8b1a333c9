"""Targets of what MCP servers and users send: messages of the proxy, known tools, skill packages, origins of a call."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import PurePosixPath
from random import Random
from typing import Any

from aver.capsule.json_reader import read_json
from aver.errors import AverError
from aver.gate.origins.answer import judge_answer
from aver.gate.origins.judgement import DOUBTS, ToolMeaning, judge_call
from aver.gate.origins.read_values import ReadValues, SourceCall, list_texts
from aver.gate.origins.tool_class import classify_tool
from aver.gate.origins.user_words import UserWords
from aver.gateway.skills.indicators import find_indicators
from aver.gateway.skills.package import BYTES_MAX, FILES_MAX, digest_files, read_package, write_package
from aver.mcp.proxy.messages import (
    MessageProblem,
    find_progress_token,
    is_request_id,
    keep_protocol_meta,
    read_client_message,
    read_server_line,
    write_message,
)
from aver.mcp.proxy.tool_book import ToolBook, list_changed_tools, server_file, trust_changed_tools
from fuzz.byte_edits import mutate_bytes
from fuzz.honest import read_files, write_files
from fuzz.oracles import Defect, call_parser
from fuzz.target import Target

TOOL = {"name": "send", "description": "Sends a mail.", "inputSchema": {"type": "object"}}


class ProxyMessages(Target):
    """Lines that an MCP client and a server send to the proxy. No client's line becomes a different message."""

    name = "proxy-message"

    def seeds(self) -> list[bytes]:
        meta = {"progressToken": 7, "io.modelcontextprotocol/related-task": {"taskId": "t"}, "other": 1}
        call = {"name": "send", "arguments": {"to": "bob@example.com"}, "_meta": meta}
        answer = {"content": [{"type": "text", "text": "sent"}], "isError": False}
        messages: list[Any] = [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}},
            {"jsonrpc": "2.0", "id": "a", "result": answer},
            {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "no", "data": {}}},
            [{"jsonrpc": "2.0", "id": 3, "method": "ping"}, {"jsonrpc": "2.0", "id": 4, "result": {"tools": [TOOL]}}],
        ]
        return [json.dumps(message).encode() for message in messages]

    def run(self, data: bytes) -> None:
        try:
            message = read_client_message(data)
        except MessageProblem as problem:
            if not problem.words or not all(number is None or is_request_id(number) for number in problem.ids):
                raise Defect(f"a refusal without words, or with a wrong id: {problem.ids}") from problem
        except Exception as error:
            raise Defect(f"internal error: {type(error).__name__}: {error}") from error
        else:
            if read_json(write_message(message)) != message:
                raise Defect("the server would get another message")
            params = message.get("params")
            if isinstance(params, dict):
                call_parser(lambda: keep_protocol_meta(params.get("_meta")))
                call_parser(lambda: find_progress_token(params))
        try:
            for found in read_server_line(data):
                if b"\n" in found.line.strip(b"\n"):
                    raise Defect("the client would get two lines")
        except (MessageProblem, Defect) as error:
            if isinstance(error, Defect):
                raise
        except Exception as error:
            raise Defect(f"internal error: {type(error).__name__}: {error}") from error


class KnownTools(Target):
    """The file of the tools that a proxy has seen, and the definitions that a server sends."""

    name = "known-tools"

    def seeds(self) -> list[bytes]:
        home = self.things.new_directory("known-tools-seed")
        ToolBook(home, "mail").learn([TOOL, {"name": "read"}])
        ToolBook(home, "mail").learn([{**TOOL, "description": "Sends all mail."}])
        return [server_file(home, "mail").read_bytes()]

    def run(self, data: bytes) -> None:
        home = self.things.new_directory("known-tools")
        path = server_file(home, "mail")
        path.parent.mkdir(mode=0o700, parents=True)
        path.write_bytes(data)
        path.chmod(0o600)
        shown = call_parser(lambda: list_changed_tools(home, "mail"))
        book = ToolBook(home, "mail")
        changed = call_parser(lambda: book.learn([TOOL, read_tool(data)]))
        if changed is not None:
            known = call_parser(lambda: book.find("send"))
            if known is None or known.is_changed != ("send" in changed):
                raise Defect("a tool is changed and known at once")
        if shown:
            call_parser(lambda: trust_changed_tools(home, "mail", shown))


def read_tool(data: bytes) -> Any:
    """A definition that a server could send: any JSON value of the input."""
    try:
        return read_json(data)
    except AverError:
        return {"name": data.decode("utf-8", "replace")}


class SkillPackages(Target):
    """A skill as a ZIP file: no file of it may land outside of its directory, and its digest covers every byte."""

    name = "skill-package"

    def seeds(self) -> list[bytes]:
        packed = []
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            file = io.BytesIO()
            with zipfile.ZipFile(file, "w", method) as archive:
                archive.writestr("SKILL.md", "# Mail\nRead http://a.example/x and run tools/send.py\n")
                archive.writestr("tools/send.py", "print('sent')\n" * 20)
                archive.mkdir("empty")
            packed.append(file.getvalue())
        return packed

    def mutate(self, data: bytes, random: Random) -> bytes:
        if random.random() < 0.3:  # A name of the same length keeps the archive whole.
            name = random.choice(
                (b"../send/x.py", b"/tools/s.py/", b"tools//s.pyy", b"SKILL.md/a.p", b"tools\\send.py")
            )
            data = data.replace(b"tools/send.py", (name + b"xx")[:13])
        return mutate_bytes(data, random)

    def run(self, data: bytes) -> None:
        source = self.things.new_path("skill.zip")
        source.write_bytes(data)
        package = call_parser(lambda: read_package(source))
        if package is None:
            return
        if len(package.files) > FILES_MAX or sum(map(len, package.files.values())) > BYTES_MAX:
            raise Defect("a package beyond its bounds")
        for name in package.files:
            if name.startswith("/") or ".." in PurePosixPath(name).parts:
                raise Defect(f"a path that leaves the package: {name!r}")
        directory = self.things.new_directory("skill")
        call_parser(lambda: write_package(package, directory))
        if read_files(directory) != dict(package.files):
            raise Defect("other files than the package has")
        if package.digest != digest_files(package.files) or read_package(directory).digest != package.digest:
            raise Defect("the digest is not that of the files")
        call_parser(lambda: find_indicators(package.files, frozenset({"a.example"})))


class SkillDirectory(Target):
    """A skill as a directory: a line of the input is a name, and the next one its content."""

    name = "skill-directory"

    def seeds(self) -> list[bytes]:
        return [b"SKILL.md\n# Mail\ntools/send.py\nprint('sent')\n", b"SKILL.md\nx\n\xff.md\ny\n"]

    def mutate(self, data: bytes, random: Random) -> bytes:
        return mutate_bytes(data, random)

    def run(self, data: bytes) -> None:
        lines = data.split(b"\n")
        names = (line.replace(b"\x00", b"").strip(b"/").decode("utf-8", "surrogateescape") for line in lines[::2])
        # Only what a file system can hold below the directory.
        files = {
            name: content for name, content in zip(names, lines[1::2], strict=False) if ".." not in name.split("/")
        }
        directory = self.things.new_path("skill-directory")
        write_files(directory, {name: content for name, content in files.items() if name not in ("", ".")})
        package = call_parser(lambda: read_package(directory))
        if package is not None and dict(package.files) != read_files(directory):
            raise Defect("other files than the directory has")


class Origins(Target):
    """The words of a user, the results of earlier calls, and a call: nothing in them may stop the judgement."""

    name = "origins"

    def seeds(self) -> list[bytes]:
        result = {"content": [{"type": "text", "text": json.dumps([{"id": 3, "from": "eve@x.example", "body": "Hi"}])}]}
        schema = {"properties": {"to": {"type": "string", "format": "email"}, "when": {"type": "string"}}}
        call = {"to": "bob@example.com", "when": "2026-03-04", "amount": 12.5, "note": {"a": ["x", None, True]}}
        turns = ["Please send 'the report' to Bob Miller on 4 March.", "Then pay 1,200.50 to bob@example.com #42."]
        value = {"turns": turns, "tool": "send_money", "result": result, "arguments": call, "schema": schema}
        return [json.dumps(value).encode(), json.dumps({**value, "tool": "files.delete", "turns": []}).encode()]

    def run(self, data: bytes) -> None:
        try:
            given = read_json(data)
        except AverError:
            given = {"turns": [data.decode("utf-8", "replace")], "result": data.decode("utf-8", "replace")}
        if not isinstance(given, dict):
            given = {"result": given}
        turns = [turn for turn in _as_list(given.get("turns")) if isinstance(turn, str)]
        arguments, schema = _as_dict(given.get("arguments")), _as_dict(given.get("schema"))
        tool = str(given.get("tool", ""))
        words = call_parser(lambda: UserWords.read(turns))
        read = ReadValues()
        call_parser(lambda: read.add(SourceCall("list_mail", "read", list_texts(arguments)), given.get("result")))
        found = call_parser(lambda: classify_tool(tool, str(given.get("description", "")), schema, arguments))
        judged = call_parser(lambda: judge_call(ToolMeaning(tool, found, schema), arguments, words, read))
        answer = call_parser(lambda: judge_answer(" ".join(turns) or tool, words, read))
        for each in (judged, answer):
            if each is None or not each.doubts <= set(DOUBTS):
                raise Defect(f"a judgement with a doubt that no table has: {each}")
            call_parser(lambda each=each: json.dumps(each.to_dict()))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


TARGETS: tuple[type[Target], ...] = (ProxyMessages, KnownTools, SkillPackages, SkillDirectory, Origins)

"""The class of a tool: what its calls do.

    read     looks something up in the service
    fetch    gets something from an address that the call names
    send     gives a text to others: a message, a post
    share    gives others access: to a file, a room, an event. `add_member` shares
    pay      moves money
    create   makes something new: an event, a file, a booking
    change   changes something that is there
    delete   removes something

`classify_tool` looks at these in turn. The first that says something decides:

1. the user's settings, which say `effects` of the tool;
2. the name, if its first word, or the first behind the server's own name, is a known verb. Some verbs have another
   meaning beside certain words of the name, or of the name that the user gave to the server: `git_checkout` pays
   nothing;
3. a later verb of the name (`issue_read`), or the verb of the description's first sentence, if it is that of an effect;
4. two of these three, which together say that the tool reads: a later verb of the name, the verb of the description's
   first sentence, and the annotation `readOnlyHint: true`. One of them is not enough: `truncate_logs` reads no logs.

A tool of which nothing is known changes something. Four things make a class worse, and none makes it better: a second
verb of the name behind `and` or `or`; a sentence of the description that begins with the verb of an effect; the
annotations `readOnlyHint: false` and `destructiveHint: true`; and an argument that takes a program, such as SQL, which
can do anything. `readOnlyHint: true` alone counts only for a server that the user trusts. A read that takes an address
is a fetch.

    >>> classify_tool("get_or_create_label")
    'create'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile, pairwise
from typing import Any, Literal, get_args

from aver.gate.origins.plain_text import word_set
from aver.gate.origins.roles import ADDRESS_WORDS, split_name
from aver.lazy_pattern import lazy_pattern

CallClass = Literal["read", "fetch", "send", "share", "pay", "create", "change", "delete"]

CALL_CLASSES: tuple[str, ...] = get_args(CallClass)

PARTS_MAX = 10_000
"""Parts of a schema that are looked at."""

DESCRIPTION_MAX = 4_000
"""Characters of a description that are read."""

_SEVERITY = ("read", "fetch", "create", "change", "share", "send", "delete", "pay")
"""From the mildest to the worst, where a tool is of several classes."""

_VERBS: Mapping[CallClass, str] = {
    "read": """get list read search find check show view describe lookup look query count fetch browse retrieve inspect
        status stat preview peek explain compare diff validate verify analyze analyse summarize summarise scan
        whoami info history detail details tree current convert calculate resolve suggest recommend estimate has is
        load monitor watch wait snapshot screenshot head tail log logs grep display test ping return provide
        examine determine obtain collect render extract map crawl scrape measure audit report directions distance
        elevation geocode think echo sample lint trace outline match navigate_history available allowed""",
    "fetch": "download visit open navigate goto curl",
    "send": """send post reply email mail message notify publish forward broadcast comment tweet dm respond contact
        announce submit react""",
    "share": "share invite grant permit assign subscribe authorize authorise join",
    "pay": "pay transfer refund buy purchase charge wire donate tip bill checkout withdraw payout reimburse",
    "create": """create add make new insert schedule book reserve register generate write save upload import put build
        plan order fork clone duplicate copy commit start launch begin init initialize bootstrap record log_entry
        store remember draft enroll branch tag apply_template export""",
    "change": """update edit modify change set patch rename move append replace reschedule adjust mark toggle enable
        disable configure merge apply execute run call invoke fix extend restore reset rebase
        click type fill press drag hover select_option evaluate upsert select sync push stash switch convert_file resize
        install scale rollout restart deploy expose transition link unlink lock unlock pin unpin close reopen approve
        handle manage perform trigger approve_request stage unstage expire pause resume rotate emulate toggle_flag
        emit operate control alter process complete exec eval""",
    "delete": """delete remove cancel clear drop discard erase destroy purge unsubscribe revoke kick ban uninstall
        terminate kill stop prune archive wipe trash dismiss rm cleanup""",
}

_CLASS_BY_VERB: Mapping[str, CallClass] = {verb: name for name, words in _VERBS.items() for verb in words.split()}

_MONEY = word_set("money payment payments transaction transactions invoice funds payout refund charge")
"""Words that make a sending or scheduling tool one that pays."""

_VERSION_CONTROL = word_set("git hg svn jj mercurial subversion")
_VERSIONS = word_set("branch branches commit commits revision revisions tag tags worktree repo repository")
_PEOPLE = word_set(
    """user users member members people person participant participants attendee attendees guest guests collaborator
    collaborators reviewer reviewers subscriber subscribers follower followers"""
)

_MEANINGS_BESIDE: Mapping[str, tuple[frozenset[str], CallClass]] = {
    "checkout": (_VERSION_CONTROL | _VERSIONS, "change"),
    "get": (frozenset({"rid"}), "delete"),
    "check": (word_set("in out off"), "change"),
    "fetch": (_VERSION_CONTROL, "change"),  # It writes into the repository.
    "add": (_PEOPLE, "share"),
    "transfer": (word_set("file files issue issues ticket call ownership domain project") | _VERSIONS, "share"),
}
"""Verbs that mean something else beside one of these words. Description and schema do not count here: they are the
server's own words about what its tool does, and no class becomes less by them."""

_READ_NOUNS = word_set(
    """status stat info history detail details tree current log logs head tail snapshot screenshot report map sample
    test match outline trace preview query audit count display watch monitor available allowed diff"""
)
"""Verbs of reads that are names of things as well. A verb behind them says what happens to the thing."""

_NEVER_NOUNS = word_set(
    """delete remove replace write send execute erase destroy purge revoke create modify overwrite insert publish
    install uninstall append rename pay invoke upload"""
)
"""Verbs that are no names of things: at the end of a name they say what the tool does."""

_BEFORE_NOUNS = frozenset({"a", "an", "the", "of"})
"""`retrieve-a-comment` does not comment."""

_BEFORE_VERBS = word_set("tool to this it will can also that which used use for")
"""`Tool to list …`, `This gets …`, `Used to find …`"""

_CONJUNCTIONS = frozenset({"and", "or", "then"})
_SENTENCE = lazy_pattern(
    r"(?:^|[.!?:]\s+|\n+\s*[-*]?\s*)(?:[Ii]t\s+)?((?:(?:[Ww]ill|[Aa]lso|[Tt]hen|[Cc]an|[Aa]dditionally),?\s+)*)([A-Za-z-]{2,20})"
)
"""The words before the verb of a sentence, and the verb."""


def find_verb_class(word: str, beside: Iterable[str] = ()) -> CallClass | None:
    """Return the class of a verb in any of its forms; None for a word that no table has.

    `beside` are the words around it.
    """
    lower = word.lower()
    for form in _strip_endings(lower):
        if form in _MEANINGS_BESIDE and not _MEANINGS_BESIDE[form][0].isdisjoint(beside):
            return _MEANINGS_BESIDE[form][1]
        if form in _CLASS_BY_VERB:
            return _CLASS_BY_VERB[form]
    return None


def can_mean(word: str, call_class: str) -> bool:
    """Whether a verb is of a class in one of its meanings."""
    return find_verb_class(word) == call_class or _MEANINGS_BESIDE.get(word, ((), None))[1] == call_class


KIND_MIN = 3
"""Letters of a word that says what kind of thing a tool is about. `v2` says nothing."""


def list_kinds(tool: str) -> list[str]:
    """Return the words of a tool's name that say what kind of thing it is about, the main one last: `event`."""
    return [word for word in split_name(tool) if find_verb_class(word) is None and len(word) >= KIND_MIN]


def find_kind(tool: str) -> str:
    """Return the kind of thing that a tool is about, in the singular, in whatever place of the name it stands."""
    # In `send_message` both words are verbs. The one that only says what to do is not the kind.
    words = list_kinds(tool) or [word for word in split_name(tool) if word not in _DOING] or [tool.lower()]
    return words[-1].removesuffix("s")


_DOING = word_set("send post create add make new put start")


def _strip_endings(word: str) -> Iterable[str]:
    yield word
    for ending, instead in (("ies", "y"), ("es", ""), ("es", "e"), ("s", ""), ("ing", ""), ("ing", "e")):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            yield word[: -len(ending)] + instead
    # `planning`, `getting`: the last letter is doubled.
    if word.endswith("ing") and len(word) > 6 and word[-4] == word[-5]:
        yield word[:-4]


def classify_tool(
    name: str,
    description: str = "",
    schema: Mapping[str, Any] | None = None,
    annotations: Mapping[str, Any] | None = None,
    *,
    server: str = "",
    declared: Iterable[str] | None = None,
    is_trusted: bool = False,
) -> CallClass:
    """Return the class of a tool. `server` is the user's name for its server, `declared` what the settings say."""
    hints = annotations or {}
    if declared is not None:
        return _read_declared(tuple(declared))
    words = split_name(name)
    own = split_name(server)
    # `git_status`: a name may begin with that of its server.
    verbs = list(dropwhile({*own, *_VERSION_CONTROL}.__contains__, words)) or words
    beside = {*words, *own}
    found = find_verb_class(verbs[0], beside) if verbs else None
    if found == "read" and (verbs[0] in _READ_NOUNS or verbs[-1] in _NEVER_NOUNS):
        # `status_update` and `search_replace`: the verb comes last.
        found = max(found, _find_later_verb(verbs, beside) or found, key=_SEVERITY.index)
    elif found is None:
        found = _weigh_words(_find_later_verb(words, beside), _classify_first_sentence(description), hints)
    if is_trusted and hints.get("readOnlyHint") is True:
        found = "read"
    elif found is None:
        return "delete" if hints.get("destructiveHint") is True else "change"
    else:
        found = _worsen(found, words, description, hints)
        if found in ("read", "fetch") and _takes_program(schema, description):
            found = "change"
    if found in ("send", "create", "share") and _MONEY & set(words):
        return "pay"
    if found == "read" and _takes_address(schema):
        return "fetch"
    return found


def _weigh_words(later: CallClass | None, described: CallClass | None, hints: Mapping[str, Any]) -> CallClass | None:
    """Return the class of a tool whose name begins with no known verb; None where too little is known.

    A server's word makes an effect of it. For a read it takes two.
    """
    told = [found for found in (later, described) if found is not None]
    if not told:
        return None
    worst = max(told, key=_SEVERITY.index)
    if worst not in ("read", "fetch"):
        return worst
    return worst if len(told) + (hints.get("readOnlyHint") is True) >= 2 else None


def _find_later_verb(words: list[str], beside: set[str]) -> CallClass | None:
    """Return the worst class of the verbs of a name behind its first word."""
    known = [
        found
        for before, word in pairwise(words)
        if before not in _BEFORE_NOUNS
        and word in _CLASS_BY_VERB
        and (found := find_verb_class(word, beside)) is not None
    ]
    return max(known, key=_SEVERITY.index) if known else None


def _classify_first_sentence(description: str) -> CallClass | None:
    """Return the worst class of the verbs that a description begins with: `List, create or close a tab.`"""
    # Only these come before the verb. `Truncates the logs` must not begin with `logs`.
    before, bar, rest = description[:DESCRIPTION_MAX].partition(" | ")  # `Notion | Query a data source`
    words = (rest if bar and len(before.split()) <= 2 else description[:DESCRIPTION_MAX]).split()
    start = next((index for index, word in enumerate(words) if word.lower() not in _BEFORE_VERBS), len(words))
    classes, is_verb_next = [], True
    for word in words[start:]:
        if is_verb_next and (found := _find_plain_verb(word)):
            classes.append(found)
            is_verb_next = word.endswith(",")
        elif word.lower() in _CONJUNCTIONS:
            is_verb_next = True
        else:
            break
    return max(classes, key=_SEVERITY.index) if classes else None


def _find_plain_verb(word: str) -> CallClass | None:
    return find_verb_class(word.strip(".,:`'\""))


def _worsen(found: CallClass, words: list[str], description: str, hints: Mapping[str, Any]) -> CallClass:
    """Return the worst class that name, description and annotations give."""
    classes = [found]
    for before, word in pairwise(words):
        if before in _CONJUNCTIONS and (second := find_verb_class(word)) is not None:
            classes.append(second)
    if found in ("read", "fetch"):
        for before, verb in _SENTENCE.findall(description[:DESCRIPTION_MAX]):
            is_verb = before or verb.lower().endswith("s") or verb[0].isupper()
            second = find_verb_class(verb) if is_verb else None
            if second is not None and verb.lower() not in _NOUNS:
                classes.append(second)
        if hints.get("readOnlyHint") is False:
            classes.append("change")
    if hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        classes.append("change" if found in ("read", "fetch") else found)
    return max(classes, key=_SEVERITY.index)


_NOUNS = word_set(
    """calls emails messages posts comments replies tips tags records branches plans orders bills charges links
    types logs forks copies stores applies runs changes sets updates notes new start note type call run tag
    set order link stage process control copy handles operates select"""
)
"""Words at the beginning of a sentence that seldom say what a tool does to something: most are names of things."""


_PROGRAMS = word_set(
    """sql statement statements script code program command commands cmd argv expression expr javascript js python bash
    shell cypher graphql mutation sparql gremlin"""
)
"""Words of arguments that hold a program. Nobody reads what it does."""

_PROGRAM_LANGUAGES = word_set(
    """sql cypher graphql sparql gremlin javascript python bash shell expression postgres postgresql mysql mariadb
    sqlite mssql t-sql pl/sql plsql duckdb"""
)
_QUERY = frozenset({"query", "queries", "q"})


def _takes_program(schema: Mapping[str, Any] | None, description: str) -> bool:
    """Whether an argument is a program, by its name; a query is one where the description names its language."""
    for name, own in _list_properties(schema):
        words = set(split_name(name))
        if _PROGRAMS & words:
            return True
        if _QUERY & words:
            told = f"{description[:DESCRIPTION_MAX]} {str(own.get('description') or '')[:DESCRIPTION_MAX]}".lower()
            if not _PROGRAM_LANGUAGES.isdisjoint(word.strip(".,:;()`'\"") for word in told.split()):
                return True
    return False


def _takes_address(schema: Mapping[str, Any] | None) -> bool:
    return any(ADDRESS_WORDS & set(split_name(name)) for name, _ in _list_properties(schema))


def _list_properties(schema: Mapping[str, Any] | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names of all arguments with their schemas: also inside of lists and choices, and by reference."""
    waiting: list[Any] = [schema]
    referred: set[str] = set()
    for _ in range(PARTS_MAX):
        if not waiting:
            return
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping):
            properties = part.get("properties")
            for name, own in properties.items() if isinstance(properties, Mapping) else ():
                yield str(name), own if isinstance(own, Mapping) else {}
                waiting.append(own)
            waiting += [part[key] for key in _PARTS if key in part]
            reference = str(part.get("$ref") or "")
            # Definitions that nothing refers to take no part: some servers give all of theirs to each tool.
            if reference.startswith("#/") and reference not in referred:
                referred.add(reference)
                waiting.append(_resolve(schema, reference))
    # Nobody has seen the rest, so it may hold anything.
    yield "command", {}


_PARTS = ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "if", "then", "else")


def _resolve(schema: Any, reference: str) -> Any:
    """Return the part of a schema that a reference such as `#/$defs/Job` leads to; None where there is none."""
    for key in reference.removeprefix("#/").split("/"):
        schema = schema.get(key) if isinstance(schema, Mapping) else None
    return schema


def _read_declared(effects: tuple[str, ...]) -> CallClass:
    """Return the class of a tool whose effects the settings give."""
    if not set(effects) - {"read", "service-read"}:
        return "read"
    if "delete" in effects:
        return "delete"
    if "egress" in effects:
        return "send"
    return "fetch" if set(effects) <= {"read", "service-read", "network"} else "change"

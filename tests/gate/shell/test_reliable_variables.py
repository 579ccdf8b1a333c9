"""A variable is known only where nothing else may set it."""

from __future__ import annotations

from support.judged_commands import list_asking, list_passing
from support.shell_corpus import WORKSPACE


def test_an_argument_is_not_the_name_of_a_command() -> None:
    commands = (
        "F=a.py; grep -r foo . ; cat $F",
        "S=/tmp/x && go build -o $S/app . && ls -l $S/app",
        "F=a.py; echo read eval source export; cat $F",
        "F=a.py; grep -n local src/b.py; cat $F",
    )
    assert list_asking(commands, WORKSPACE) == []


def test_a_command_that_may_set_it_makes_it_unknown() -> None:
    commands = (
        "F=a.py; read F < x; cat $F",
        "F=a.py; builtin read F < x; cat $F",
        "F=a.py; command -p read F < x; cat $F",
        "F=a.py; builtin command read F < x; cat $F",
        'F=a.py; "re"ad F < x; cat $F',
        "F=a.py; X=read; $X F < x; cat $F",
        "F=a.py; X=command; $X read F < x; cat $F",
        "F=a.py; command $X F < x; cat $F",
        "F=a.py; builtin ${X} F < x; cat $F",
        "F=a.py; time read F < x; cat $F",
        "F=a.py; ! read F < x; cat $F",
        "F=a.py; exec read F; cat $F",
        "F=a.py; . ./env.sh; cat $F",
        "F=a.py; source ./env.sh; cat $F",
        "F=a.py; eval 'F=/etc/shadow'; cat $F",
        "F=a.py; { read F; } < x; cat $F",
        "F=a.py; while read F; do cat $F; done < x",
        "F=a.py; echo x | read F; cat $F",
        "F=a.py; printf -v F %s ~/.ssh/id_rsa; cat $F",
        "F=a.py; mapfile F < x; cat $F",
        "F=a.py; A=1 read F < x; cat $F",
        "F=a.py; F+=b; cat $F",
        "F=a.py; false && F=~/.ssh/id_rsa; cat $F",
    )
    assert list_passing(commands, WORKSPACE) == []

"""Names of files may be listed where their contents may not be read, and the contents stay closed."""

from __future__ import annotations

from support.judged_commands import list_asking, list_passing
from support.shell_corpus import WORKSPACE

LISTINGS = (
    "ls ~/.cache",
    "ls -laR ~/.gemini/tmp/",
    "find ~/.npm/_npx -name 'agents*'",
    "du -sh ~/.cache ~/.local",
    "stat ~/.config/app/state.db",
    "test -d ~/.cache && echo yes",
    "find /home/other/music -iname '*.mp3'",
    "ls /root",
    "find /root/ -name notes -type f",
    "tree -L 2 ~/.config/app",
    "wc -l ~/.config/app/log.jsonl",
    "file ~/.config/app/state.db",
    "readlink -f ~/.local/share/x",
)


def test_names_pass() -> None:
    assert list_asking(LISTINGS, WORKSPACE) == []
    assert set(list_passing(LISTINGS, WORKSPACE, "strict")) <= {"test -d ~/.cache && echo yes"}


def test_contents_and_secrets_ask() -> None:
    commands = (
        "cat ~/.config/app/state.json",
        "head -1 ~/.config/app/state.json",
        "grep -r token ~/.config/app",
        "wc -l < ~/.config/app/log.jsonl; cat < ~/.config/app/log.jsonl",
        "ls ~/.ssh",
        "ls -la ~/.aws ~/.cache",
        "find ~/.gnupg -type f",
        "stat ~/.config/gh/hosts.yml",
        "wc -c ~/.ssh/id_rsa",
        "ls ~/.aver",
        "ls ~/.s*",
        "ls ~/.*",
        "ls /proc/1/fd",
        "du --files0-from=$HOME/.config/app/state.json",
        "du -X ~/.config/app/state.json .",
        "wc --files0-from=$HOME/.config/app/state.json",
        "file -f ~/.config/app/state.json",
        "file -m ~/.config/app/magic a",
        "tree --fromfile ~/.config/app/state.json",
        "tree --fromtabfile ~/.config/app/state.json",
        "tree --hintro=/home/me/.config/app/state.json -H .",
        "fd --ignore-file ~/.config/app/state.json x",
        "find ~/.config/app -type f -exec cat {} +",
        "find ~/.config/app -type f | xargs cat",
        "ls ~/.config/app | xargs cat",
        "cat $(ls ~/.config/app/*)",
        "cat $(find ~/.config/app -name x)",
        "for f in $(ls ~/.config/app/*); do cat $f; done",
        "cd ~/.config/app && ls | xargs cat",
        "cd ~/.config/app && cat state.json",
        "find ~/.config/app -fprint out.txt",
        "find ~/.config/app -delete",
        "find ~/.config/app -exec rm {} +",
        "ls ~/.config/app > ~/.config/app/x",
        "ls --frobnicate ~/.config/app",
        "find $X -name a",
        'find "$X" -name a',
        "cat ~/.claude/projects/p/1.jsonl",
        "cat ~/.claude/settings.json",
        "cat ~/.claude/.credentials.json",
    )
    assert list_passing(commands, WORKSPACE) == []


def test_a_client_keeps_files_for_its_agent() -> None:
    passing = (
        "tail -5 ~/.claude/projects/-work-shop/5f0c/tool-results/toolu_01.txt",
        "grep -n x /home/me/.claude/projects/-work-shop/5f0c/tool-results/b1.txt",
        "cat ~/.claude/projects/-work-shop/memory/MEMORY.md",
        "cat ~/.claude/skills/pdf/SKILL.md ~/.claude/skills/pdf/docs/forms.md",
        "cat ~/.claude/CLAUDE.md",
    )
    assert list_asking(passing, WORKSPACE) == []
    assert list_passing(passing, WORKSPACE, "strict") == []
    asking = (
        "cat ~/.claude/projects/-work-shop/5f0c.jsonl",
        "cat ~/.claude/projects/-work-shop/5f0c/tool-results/../../5f0c.jsonl",
        "cat ~/.claude/projects/-work-shop/5f0c/tool-results/x.jsonl",
        "cat ~/.claude/projects/-work-shop/5f0c/tool-results",
        "cat ~/.claude/projects/-work-shop/5f0c/tool-results/*",
        "cat ~/.claude/projects/-work-shop/5f0c/other/x.txt",
        "cat ~/.claude/projects/-work-shop/5f0c/tool-results/.env.txt/../../x",
        "cat ~/.claude/skills/pdf/run.sh",
        "cat ~/.claude/skills/.env/x.md/../../.credentials.json",
        "cat ~/.claude/settings.local.json",
        "echo x > ~/.claude/skills/pdf/SKILL.md",
        "echo x >> ~/.claude/projects/-work-shop/memory/MEMORY.md",
        "rm ~/.claude/projects/-work-shop/5f0c/tool-results/b1.txt",
        "bash ~/.claude/projects/-work-shop/5f0c/tool-results/b1.txt",
        "cat /home/other/.claude/projects/p/5f0c/tool-results/b1.txt",
        "cat ~/.codex/sessions/2026/x.jsonl",
    )
    assert list_passing(asking, WORKSPACE) == []

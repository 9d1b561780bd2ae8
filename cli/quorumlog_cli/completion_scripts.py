"""Completion scripts for bash, zsh and fish, from the tree of all commands.

The scripts hold all words of commands themselves, so that completing one costs no Python. Names of the cluster come
from `quorumlog _names` (completing/live_names.py), which says nothing rather than late. They find the command by the
first words that are no options: only commands have options that take a value, groups have none (a test sees to it).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from quorumlog_cli.command_tree import Command, Option

PROGRAMS = "quorumlog ql"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


BASH = """# Completion of quorumlog for bash, made by: quorumlog completion bash
_quorumlog_at() {
    words="" offered="" valued="" choices="" live="" arguments=""
    case "$1" in
%s
    esac
}
_quorumlog_names() { # what it prints has no character that a shell takes for its own
    local kind="$1"
    COMPREPLY=($("${COMP_WORDS[0]}" _names "$kind" "$current" "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null))
    [[ $kind == config-values ]] && compopt -o nospace 2>/dev/null
    return 0
}
_quorumlog_argument() { # sets kind: of the argument at the cursor
    local -a kinds=($arguments)
    local at=0 word before="" depth=0 in_command=($place)
    kind="-"
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $word == -* || $word == = ]]; then
            before="$word"
        elif [[ " $valued " == *" $before "* ]]; then
            before=""
        elif (( depth < ${#in_command[@]} )); then
            depth=$((depth + 1)) before=""
        else
            at=$((at + 1)) before=""
        fi
    done
    (( ${#kinds[@]} )) || return
    (( at < ${#kinds[@]} )) || at=$((${#kinds[@]} - 1))
    kind="${kinds[at]}"
}
_quorumlog() {
    local place="" word words offered valued choices live arguments kind
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    if [[ $current == = ]]; then
        current=""
    elif [[ $previous == = ]]; then
        previous="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    COMPREPLY=()
    _quorumlog_at ""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $word == -* ]] && continue
        [[ " $words " == *" $word "* ]] || break
        place="${place:+$place }$word"
        _quorumlog_at "$place"
    done
    for word in $choices; do
        if [[ $word == "$previous="* ]]; then
            word="${word#*=}"
            COMPREPLY=($(compgen -W "${word//,/ }" -- "$current"))
            return
        fi
    done
    for word in $live; do
        [[ $word == "$previous="* ]] && _quorumlog_names "${word#*=}" && return
    done
    [[ " $valued " == *" $previous "* ]] && return # a file, as `complete -o default` offers
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$offered" -- "$current"))
        return
    fi
    _quorumlog_argument
    if [[ $kind != - ]]; then
        _quorumlog_names "$kind"
    else
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    fi
}
complete -o default -F _quorumlog %s
"""

ZSH = """#compdef %s
# Completion of quorumlog for zsh, made by: quorumlog completion zsh
_quorumlog_at() {
    commands=() offered=() valued="" choices="" live="" arguments=""
    case "$1" in
%s
    esac
}
_quorumlog_names() { # what it prints has no character that a shell takes for its own
    local -a found=(${(f)"$("${words[1]}" _names "$1" "$current" "${(@)words[2,CURRENT-1]}" 2>/dev/null)"})
    if [[ $1 == config-values ]]; then compadd -S "" -- $found; else compadd -- $found; fi
}
_quorumlog_argument() { # sets kind: of the argument at the cursor
    local -a kinds=(${=arguments}) in_command=(${=place})
    local at=1 word before="" depth=0
    kind="-"
    for word in "${(@)words[2,CURRENT-1]}"; do
        if [[ $word == -* ]]; then
            before="$word"
        elif [[ " $valued " == *" $before "* ]]; then
            before=""
        elif (( depth < ${#in_command} )); then
            (( depth += 1 )); before=""
        else
            (( at += 1 )); before=""
        fi
    done
    (( ${#kinds} )) || return
    (( at <= ${#kinds} )) || at=${#kinds}
    kind="${kinds[at]}"
}
_quorumlog() {
    local place="" word valued choices live arguments kind current="${words[CURRENT]}" previous="${words[CURRENT-1]}"
    local -a commands offered
    _quorumlog_at ""
    for word in "${(@)words[2,CURRENT-1]}"; do
        [[ $word == -* ]] && continue
        (( ${commands[(I)${word}:*]} )) || break
        place="${place:+$place }$word"
        _quorumlog_at "$place"
    done
    if [[ $current == --*=* ]]; then
        previous="${current%%%%=*}"
        compset -P '*='
    fi
    for word in ${=choices}; do
        if [[ $word == "$previous="* ]]; then
            compadd -- ${(s:,:)word#*=}
            return
        fi
    done
    for word in ${=live}; do
        if [[ $word == "$previous="* ]]; then
            _quorumlog_names "${word#*=}"
            return
        fi
    done
    _quorumlog_argument
    if [[ " $valued " == *" $previous "* ]]; then
        _files
    elif [[ $current == -* ]]; then
        _describe option offered
    elif [[ $kind != - ]]; then
        _quorumlog_names "$kind"
    elif (( ${#commands} )); then
        _describe command commands
    else
        _files
    fi
}
if [[ $funcstack[1] == _quorumlog ]]; then
    _quorumlog "$@"
else
    compdef _quorumlog %s
fi
"""

FISH = """# Completion of quorumlog for fish, made by: quorumlog completion fish
set -g __quorumlog_places %s
function __quorumlog_is
    set -l place
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; and continue
        contains -- (string join ' ' $place $word) $__quorumlog_places; or break
        set -a place $word
    end
    test "$place" = "$argv[1]"
end
function __quorumlog_names
    set -l words (commandline -opc)
    $words[1] _names $argv[1] (commandline -ct | string replace -r '^--[^=]*=' '') $words[2..-1] 2>/dev/null
end
%s
complete -c ql -w quorumlog
"""


def bash(commands: Sequence[Command]) -> str:
    return BASH % ("\n".join(map(_bash_case, commands)), PROGRAMS)


def zsh(commands: Sequence[Command]) -> str:
    return ZSH % (PROGRAMS, "\n".join(map(_zsh_case, commands)), PROGRAMS)


def fish(commands: Sequence[Command]) -> str:
    places = " ".join(shlex.quote(_place(command)) for command in commands if command.path)
    return FISH % (places, "\n".join(line for command in commands for line in _fish_lines(command)))


SCRIPTS: dict[Shell, Callable[[Sequence[Command]], str]] = {Shell.BASH: bash, Shell.ZSH: zsh, Shell.FISH: fish}


def _place(command: Command) -> str:
    return " ".join(command.path)


def _bash_case(command: Command) -> str:
    parts = {
        "words": [word for word, _ in command.words],
        "offered": [name for one in command.options for name in _offered(one)],
        **_values(command),
    }
    return _case(command, [f'{name}="{" ".join(values)}"' for name, values in parts.items() if values])


def _zsh_case(command: Command) -> str:
    lists = {
        "commands": [(word, text) for word, text in command.words],
        "offered": [(name, one.help) for one in command.options for name in _offered(one)],
    }
    parts = [
        f"{name}=({' '.join(shlex.quote(f'{word}:{text}') for word, text in pairs)})" for name, pairs in lists.items()
    ]
    parts += [f'{name}="{" ".join(values)}"' for name, values in _values(command).items() if values]
    return _case(command, parts)


def _case(command: Command, parts: Iterable[str]) -> str:
    return f"        {shlex.quote(_place(command))}) {' '.join(parts)} ;;"


def _values(command: Command) -> dict[str, list[str]]:
    """valued: names of options that take a value. choices: NAME=ONE,OTHER. live: NAME=KIND. arguments: kinds, or -."""
    return {
        "valued": [name for one in command.options if one.takes_value for name in one.names],
        "choices": [f"{name}={','.join(one.choices)}" for one in command.options if one.choices for name in one.names],
        "live": [f"{name}={one.live}" for one in command.options if one.live for name in one.names],
        "arguments": [one or "-" for one in command.arguments] if any(command.arguments) else [],
    }


def _offered(option: Option) -> list[str]:
    """Its long names, or else its short ones."""
    return [name for name in option.names if name.startswith("--")] or list(option.names)


def _fish_lines(command: Command) -> list[str]:
    head = f"complete -c quorumlog -n {_fish_quoted(f'__quorumlog_is {_fish_quoted(_place(command))}')}"
    words = [f"{head} -f -a {word} -d {_fish_quoted(text)}" for word, text in command.words]
    kinds = dict.fromkeys(one for one in command.arguments if one)  # fish does not say which argument it is at
    names = [f"{head} -f -a {_fish_quoted(_fish_names(one))}" for one in kinds]
    return words + names + [f"{head} {_fish_option(one)}" for one in command.options]


def _fish_names(kind: str) -> str:
    return f"(__quorumlog_names {kind})"


def _fish_option(option: Option) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    offered = _fish_names(option.live) if option.live else " ".join(option.choices)
    value = [f"-x -a {_fish_quoted(offered)}"] if offered else ["-r"] * option.takes_value
    return " ".join([*names, *value, f"-d {_fish_quoted(option.help)}"])


def _fish_quoted(text: str) -> str:
    r"""Between single quotes only \ and ' are special in fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

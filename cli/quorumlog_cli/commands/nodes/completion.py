"""`quorumlog completion`: a script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Annotated

import typer

from quorumlog_cli.completion_scripts import Shell
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.output import Format, OutputOption

app = typer.Typer(add_completion=False)


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    output_format: OutputOption = Format.TABLE,
) -> None:
    """Print a script with which a shell completes commands, options and their choices. Make it anew after an upgrade.

    Names of topics, partitions, groups, brokers, transactional ids, users, topic configs and profiles are completed,
    too, of the cluster that -b, --profile or the current profile names: within 300 ms or not at all (press the key
    again), and for 10 s as they were. Names that a shell would have to quote are left out.

    bash: a line in ~/.bashrc: eval "$(quorumlog completion bash)".
    zsh: quorumlog completion zsh > "${fpath[1]}/_quorumlog", before compinit.
    fish: quorumlog completion fish > ~/.config/fish/completions/quorumlog.fish.
    """
    from quorumlog_cli.command_tree import all_commands
    from quorumlog_cli.completion_scripts import SCRIPTS

    output.use(output_format)
    script = SCRIPTS[shell](all_commands())
    if output.is_json():
        output.show_json({"shell": shell.value, "script": script})
    else:
        print(script, end="")

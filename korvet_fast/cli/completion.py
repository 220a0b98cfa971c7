"""`korvet-fast completion`: a shell's script that completes commands and options, made by click."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_KORVET_FAST_COMPLETE"  # where click looks for it
# What a script needs that click takes for granted: zsh has `compdef` only where a start-up file has loaded it.
NEEDED = {"zsh": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands and options. It belongs in the start-up file of the shell.

    \b
    Examples:
      eval "$(korvet-fast completion bash)"                                           # ~/.bashrc
      eval "$(korvet-fast completion zsh)"                                            # ~/.zshrc
      korvet-fast completion fish > ~/.config/fish/completions/korvet-fast.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click has each of SHELLS"
    root = context.find_root()
    script = found(root.command, {}, root.info_name or "korvet-fast", VARIABLE).source()
    first, end, rest = script.partition("\n")  # zsh's first line is for files that it finds by themselves
    click.echo(f"{first}{end}{NEEDED.get(shell, '')}{rest}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages of `encore` and of each of its commands, and completions for bash, zsh and fish, made
from what --help says.

    packaging/command_files.py --encore build/release/bin/encore --into DESTDIR/usr

Folders below are those that these programs look into: share/man/man1,
share/bash-completion/completions, share/zsh/vendor-completions,
share/fish/vendor_completions.d.
"""

import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "docs"))
from options_page import entries, help_of  # noqa: E402


class Option:
    """A line of --help: `--format text|jsonl (default text)`, `-h, --help`."""

    def __init__(self, shown, what):
        self.shown, self.what = shown, what
        words = re.sub(r" \((required|default [^)]*)\)$", "", shown)
        self.flags = re.findall(r"(?:^|, )(--?[a-z][a-z0-9-]*)", words)
        self.value = (re.search(r" ([^ ]+)$", words) or ["", ""])[1] if self.flags else words
        if self.value in self.flags:
            self.value = ""
        # What it may be, where --help lists that.
        listed = re.fullmatch(r"([a-z0-9_]+(?:\|[a-z0-9_]+)+)(,\.\.\.)?", self.value)
        self.values = listed[1].split("|") if listed else []


class Command:
    def __init__(self, encore, name, what):
        self.name, self.what = name, what
        self.help = help_of(encore, *([name] if name else []))
        self.arguments = [Option(*entry) for entry in entries(self.help, "Arguments")]
        self.options = [Option(*entry) for entry in entries(self.help, "Options")]


def roff(text):
    """As it is to be read, whatever roff makes of such characters."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^([.'])", r"\\&\1", text.replace("`", "\\(ga"), flags=re.M)


def manual(command, commands, version, date):
    """A man page. Lines that --help indents stay as they are, others are filled anew."""
    name = f"encore-{command.name}" if command.name else "encore"
    usage, _, rest = command.help.partition("\nUsage: ")[2].partition("\n")
    rest = rest.strip("\n")
    lines = [f'.TH {name.upper()} 1 {date} "encore {version}" "User Commands"',
             ".SH NAME", f"{roff(name)} \\- {roff(command.what[:1].lower() + command.what[1:])}",
             ".SH SYNOPSIS", f".B {roff(usage)}"]
    for block in rest.split("\n\n"):
        title, _, body = block.partition("\n")
        if re.fullmatch(r"(Arguments|Options|Subcommands):", title):
            lines.append(f".SH {title[:-1].upper()}")
            for shown, what in entries(command.help, title[:-1]):
                lines += [".TP", f".B {roff(shown)}", roff(what)]
            continue
        if re.fullmatch(r"\w+:", title) and body:
            lines.append(f".SH {title[:-1].upper()}")
            block = body
        elif ".SH DESCRIPTION" not in lines and ".SH EXAMPLES" not in lines:
            lines.append(".SH DESCRIPTION")
        else:
            lines.append(".PP")
        kept = False
        for line in block.splitlines():
            if line.startswith(" ") != kept:
                kept = not kept
                lines.append(".nf" if kept else ".fi")
            lines.append(roff(line))
        if kept:
            lines.append(".fi")
    lines.append(".SH SEE ALSO")
    others = ["encore"] * bool(command.name)
    others += [f"encore-{other.name}" for other in commands if other.name and other is not command]
    lines.append(",\n".join(f".BR {roff(other)} (1)" for other in others)
                 .replace(" (1),", " (1),"))
    return "\n".join(lines) + "\n"


def bash(commands):
    cases, values = [], []
    for command in commands:
        flags = " ".join(flag for option in command.options for flag in option.flags)
        if command.name:
            cases.append(f"    {command.name}) words=\"{flags}\" ;;")
        else:
            names = " ".join(other.name for other in commands if other.name)
            cases.append(f"    '') words=\"{names} {flags}\" ;;")
        values += [f"    {command.name},{flag}) values=\"{' '.join(option.values)}\" ;;"
                   for option in command.options for flag in option.flags if option.values]
    return "\n".join([
        "# bash completion for encore", "_encore() {",
        "  local word=\"${COMP_WORDS[COMP_CWORD]}\" command='' words='' values=''",
        "  ((COMP_CWORD < 2)) || command=\"${COMP_WORDS[1]}\"",
        "  case \"$command\" in", *cases, "  esac",
        "  case \"$command,${COMP_WORDS[COMP_CWORD - 1]}\" in", *values, "  esac",
        "  COMPREPLY=()",
        "  if [[ -n \"$values\" ]]; then",
        "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))",
        "  elif [[ \"$word\" == -* || -z \"$command\" ]]; then",
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))",
        "  fi  # else names of files",
        "}", "complete -o default -F _encore encore", ""])


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(commands):
    def plain(text):
        return re.sub(r"([\[\]:\\])", r"\\\1", text)

    lines = ["#compdef encore", "", "_encore() {", "  local -a commands=("]
    lines += ["    " + quoted(f"{command.name}:{plain(command.what)}")
              for command in commands if command.name]
    lines += ["  )", "  if ((CURRENT == 2)) && [[ ${words[2]} != -* ]]; then",
              "    _describe command commands", "    return", "  fi", "  case ${words[2]} in"]
    for command in [*commands[1:], commands[0]]:
        lines.append(f"    {command.name or '*'})")
        if command.name:
            lines.append("      shift words; ((CURRENT--))")
        specs = []
        for option in command.options:
            for flag in option.flags:
                spec = f"{flag}[{plain(option.what)}]"
                if option.values:
                    spec += f":value:({' '.join(option.values)})"
                elif option.value:
                    spec += f":{plain(option.value)}:_files"
                specs.append(quoted(spec))
        specs.append("'*:file:_files'")
        lines.append("      _arguments \\\n        " + " \\\n        ".join(specs) + " ;;")
    return "\n".join([*lines, "  esac", "}", "", '_encore "$@"', ""])


def fish(commands):
    def plain(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["# fish completions for encore"]
    for command in commands:
        when = "__fish_use_subcommand"
        if command.name:
            lines.append(f"complete -c encore -n {when} -f -a {command.name} "
                         f"-d {plain(command.what)}")
            when = f"'__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            for flag in option.flags:
                kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                if option.values:
                    kind += f" -x -a '{' '.join(option.values)}'"
                elif option.value:
                    kind += " -r"
                lines.append(f"complete -c encore -n {when} {kind} -d {plain(option.what)}")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description="Writes man pages and completions of encore.")
    parser.add_argument("--encore", type=pathlib.Path, required=True)
    parser.add_argument("--into", type=pathlib.Path, required=True, help="a prefix, like /usr")
    arguments = parser.parse_args()
    encore = arguments.encore.resolve()
    version = subprocess.run([encore, "--version"], text=True, capture_output=True,
                             check=True).stdout.split()[1]
    # The same page on every day, where the build says which.
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.timezone.utc)
    date = (datetime.datetime.fromtimestamp(int(epoch), now.tzinfo) if epoch else now).date()

    commands = [Command(encore, "", "texts to vectors on CPUs")]
    commands += [Command(encore, *entry) for entry in entries(commands[0].help, "Subcommands")]
    written = {"bash-completion/completions/encore": bash(commands),
               "zsh/vendor-completions/_encore": zsh(commands),
               "fish/vendor_completions.d/encore.fish": fish(commands)}
    for command in commands:
        name = f"encore-{command.name}" if command.name else "encore"
        written[f"man/man1/{name}.1"] = manual(command, commands, version, date)
    for name, text in written.items():
        path = arguments.into / "share" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

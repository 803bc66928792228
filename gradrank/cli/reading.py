"""The options that say how data is read, made from the declarations of the file formats, for every command alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from gradrank.data.formats.file_formats import FORMATS, FileFormat, ReaderOption, reader_options
from gradrank.errors import DataError

_PANEL = "Reading data"
_FORMAT = "format_from"
_FORMATS_WITH_OPTIONS = [form for form in FORMATS if form.options]


@dataclass(frozen=True)
class Reading:
    """How to read data files, as the options of a command say; what was not asked for is left to the format."""

    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the format's reader."""

    def check(self, form: FileFormat, path: Path) -> None:
        """Refuse an option that does not go with a file's format."""
        known = {option.name for option in form.options}
        for option, forms in reader_options().items():
            if option.name in self.options and option.name not in known:
                names = ", ".join(item.name for item in forms)
                raise DataError(f"{option.flag} goes with the formats {names}, not with {form.name}", path=path)

    def words(self) -> list[str]:
        """The same as words of a command line.

        >>> " ".join(Reading("csv", {"qid": "q", "labels": {"grade": "grade", "clicks": "n"}}).words())
        '--from csv --qid-column q --label-column grade --label-column clicks=n'
        """
        words = [] if self.format is None else ["--from", self.format]
        for option in reader_options():
            if option.name in self.options:
                words += _words(option, self.options[option.name])
        return words


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in the place of its argument ``reading``, the options that say how data is read."""
    own = inspect.signature(command, eval_str=True)
    options = {_argument(option): option for option in reader_options()}
    made = [_parameter(_FORMAT, str, typer.Option("--from", metavar="FORMAT", help=_format_help(), **_panel()))]
    made += [_option_parameter(option, forms) for option, forms in reader_options().items()]
    parameters: list[inspect.Parameter] = []
    rest = [item for item in own.parameters.values() if item.kind is inspect.Parameter.VAR_KEYWORD]
    for item in own.parameters.values():
        if item.name == "reading":
            parameters += made
        elif item not in rest:
            parameters.append(item.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    parameters += rest  # another decorator may fill these in

    def call(**given: Any) -> None:
        form = given.pop(_FORMAT)
        asked = {name: given.pop(name) for name in options}
        found = {
            option.name: _value(option, asked[name])
            for name, option in options.items()
            if asked[name] not in (None, False, [])
        }
        command(**given, reading=Reading(form, found))

    # Not functools.wraps: whoever looks for the signature must find this one.
    call.__name__, call.__doc__, call.__module__ = command.__name__, command.__doc__, command.__module__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {item.name: item.annotation for item in parameters}
    return call


def _argument(option: ReaderOption) -> str:
    return option.flag.removeprefix("--").replace("-", "_")


def _panel() -> dict[str, Any]:
    return {"rich_help_panel": _PANEL}


def _format_help() -> str:
    return f"Format of the data, if the name does not tell: {', '.join(form.name for form in FORMATS)}."


def _option_parameter(option: ReaderOption, forms: list[FileFormat]) -> inspect.Parameter:
    only = "" if forms == _FORMATS_WITH_OPTIONS else f"{', '.join(form.name for form in forms)}: "
    told = option.help if not only else f"{only}{option.help[0].lower()}{option.help[1:]}"
    made = typer.Option(option.flag, metavar=option.metavar, help=told, min=option.least, **_panel())
    return _parameter(_argument(option), list[str] if option.repeated else option.kind, made)


def _parameter(name: str, kind: Any, option: Any) -> inspect.Parameter:
    annotation = Annotated[kind, option] if kind is bool else Annotated[kind | None, option]
    default = False if kind is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _value(option: ReaderOption, given: Any) -> Any:
    """What the reader takes for what was given."""
    if option.kind is bool:
        return not option.default
    if option.named:
        return _named_columns(option, given)
    return tuple(given) if option.repeated else given


def _named_columns(option: ReaderOption, given: list[str]) -> dict[str, str]:
    """Label name → column, from ``NAME`` or ``NAME=COLUMN``."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, column = word.partition("=")
        if not name or (equals and not column):
            raise DataError(f"{option.flag} is {word!r}, expected {option.metavar}")
        if not equals:
            name, column = name.removeprefix("label:") or name, name
        if name in found:
            raise DataError(f"{option.flag} gives the label {name!r} twice")
        found[name] = column
    return found


def _words(option: ReaderOption, value: Any) -> list[str]:
    if option.kind is bool:
        return [option.flag]
    if option.named:
        pairs = [name if name == column else f"{name}={column}" for name, column in value.items()]
        return [word for pair in pairs for word in (option.flag, pair)]
    return [word for item in (value if option.repeated else [value]) for word in (option.flag, str(item))]

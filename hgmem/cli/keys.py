"""`keys`: make, list and revoke keys of the service."""

from typing import Annotated, Any

import typer

from hgmem.cli.front import JsonOption, connected
from hgmem.cli.lists import OWNER, table
from hgmem.cli.options import options
from hgmem.cli.output import cut, note, plain, when
from hgmem.cli.render import print_result
from hgmem.values.access import SCOPES, KeyOptions

app = typer.Typer(rich_markup_mode=None)
keys = typer.Typer(
    name="keys", no_args_is_help=True, rich_markup_mode=None, help="Make, list and revoke keys of the service."
)
app.add_typer(keys)


@keys.command()
@options(KeyOptions)
def make(
    context: typer.Context,
    owner: Annotated[str, typer.Argument(metavar="OWNER", help="Whose memories its questions make.")],
    corpus: Annotated[
        list[str] | None,
        typer.Option("--corpus", "-c", metavar="NAME", help="A corpus that it may be used with. Repeatable."),
    ] = None,
    every_corpus: Annotated[
        bool, typer.Option("--every-corpus", help="It may be used with every corpus, later ones too.")
    ] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE", help=f"What it may do: {', '.join(SCOPES)} (all). Repeatable. Default: read and ask."
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Make a key of the service, and print its token.

    The token is printed this once: the database has only its hash.
    """
    if bool(corpus) == every_corpus:
        raise typer.BadParameter("pass either --corpus NAME, or --every-corpus", param_hint="--corpus")
    chosen = {**given, "corpora": corpus or (), **({"scopes": scope} if scope else {})}
    from hgmem.client.serving import ServiceStore

    with connected(context) as client:
        known = {one["corpus"] for one in client.corpora()}
        token, key = ServiceStore(client).make_key(owner, **chosen)
    print_result({"token": token, "key": key}, token, as_json=as_json)
    note(f"key {key.uid} of {key.owner}: keep the token, it is not shown again")
    for name in [name for name in key.corpora if name not in known]:
        note(f"corpus {name!r} does not exist yet: check the name (`hgmem corpora`)")


@keys.command("list")
def list_(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the keys, the newest first, without their tokens."""
    from hgmem.client.serving import ServiceStore

    with connected(context) as client:
        found = ServiceStore(client).service_keys()
    columns = ("key", "owner", "scopes", "corpora", "state", "since", "expires")
    rows = [
        (
            *(one.uid, cut(one.owner, OWNER), ", ".join(one.scopes), ", ".join(one.corpora) or "every", one.state),
            *(when(one.created_at), when(one.expires_at)),
        )
        for one in found
    ]
    none = "no keys yet: make one with `hgmem keys make OWNER --corpus NAME`"
    print_result(found, table(columns, rows, unless_empty="expires") if rows else none, as_json=as_json)


@keys.command()
def revoke(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="KEY", help="Uid of the key, from `keys list`.")],
) -> None:
    """Revoke a key. Running services refuse it within five seconds."""
    from hgmem.client.serving import ServiceStore

    with connected(context) as client:
        ServiceStore(client).revoke_key(uid)
    plain(f"revoked key {uid}")

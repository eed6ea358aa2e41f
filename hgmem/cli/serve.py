"""`serve`: the service over HTTP."""

from contextlib import suppress
from typing import Annotated

import typer

from hgmem.cli.front import connected
from hgmem.cli.options import AccessDaysOption, AccessLogOption
from hgmem.errors import UsageError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen at; 0.0.0.0 is all of this machine's.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="Port; 0: any free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name of this host that callers may use, such as its proxy's. Repeatable."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Origin of pages that may ask, such as https://chat.example. Repeatable."),
    ] = None,
    upload_bytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most bytes of an uploaded document.")
    ] = 20_000_000,
    access_log: AccessLogOption = None,
    access_days: AccessDaysOption = 30,
) -> None:
    """Serve questions, memories and corpora over HTTP to whoever has a key.

    Without a key, only this machine is served. Several processes may serve one database behind a proxy.
    """
    try:
        from hgmem.service import Place
        from hgmem.service import serve as serving
    except ModuleNotFoundError as missing:
        raise UsageError(f"{missing.name!r} is not installed: pip install 'hgmem[serve]'") from None
    place = Place(
        host=host,
        port=port,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        upload=upload_bytes,
        log_days=access_days,
        log=access_log,
    )
    with connected(context) as client:
        metrics = None
        with suppress(ImportError):  # without hgmem[otel] it serves without metrics
            from hgmem.telemetry import for_prometheus

            client.watcher, metrics = for_prometheus()
        serving(client, place, metrics=metrics)

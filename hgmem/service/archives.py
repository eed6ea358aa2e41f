"""Archives: a corpus as a file to download, and an uploaded one imported as a job."""

import asyncio
import tempfile
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from hgmem.service.callers import Admin
from hgmem.service.documents import left
from hgmem.service.repetition import Repeat
from hgmem.service.shapes import BYTES, FILE, JOB
from hgmem.values.access import Job

GZIP = "application/gzip"

router = APIRouter(prefix="/corpora/{corpus}/archive", tags=["archives"])


@router.get("", response_class=FileResponse, responses={200: {"content": {GZIP: BYTES}}})
def export_archive(caller: Admin, corpus: str, *, memories: bool = True, embeddings: bool = True) -> Response:
    """Download a corpus with the memories of all owners. Without vectors, an import computes them."""
    name = caller.corpus(corpus)
    folder = tempfile.TemporaryDirectory(prefix="hgmem-archive.")
    try:
        file = Path(folder.name) / f"{name}.jsonl.gz"
        caller.store.archive(name, file, memories=memories, embeddings=embeddings)
        return FileResponse(file, media_type=GZIP, filename=file.name, background=BackgroundTask(folder.cleanup))
    except BaseException:
        folder.cleanup()
        raise


@router.post("", status_code=202, response_model=JOB, openapi_extra=FILE)
async def import_archive(request: Request, caller: Admin, corpus: str, repeat: Repeat = None) -> Response:
    """Import an archive, whose bytes are the body, as a job. The corpus is the archive's, and new or empty."""
    caller.store.check_upload(caller.corpus(corpus), "archive.json")
    data = await request.body()
    return await asyncio.to_thread(
        left, caller, Job(uid="", kind="import", corpus=corpus, key="", owner=""), repeat=repeat, data=data
    )

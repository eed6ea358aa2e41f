"""Documents and jobs: uploads, and what processes of the service do with a corpus in the background."""

import asyncio
import secrets
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from hgmem.errors import NotFoundError
from hgmem.service.callers import Caller, Reader, Writer
from hgmem.service.memories import After, Limit, page
from hgmem.service.questions import json_of
from hgmem.service.repetition import Repeat, digest_of
from hgmem.service.shapes import FILE, JOB, JOBS, Deleted, DocumentRow, Page
from hgmem.values.access import Job

router = APIRouter()


class Wanted(BaseModel):
    """A job: `build` what a system needs, or `retry` the extraction of failed chunks."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"kind": "build", "system": "gists"}]})

    kind: Literal["build", "retry"]
    system: str = Field("", description="Of a build: the system.")
    recipe: str | None = None
    settings: dict[str, Any] | None = None
    retry_failed: bool | None = None


def left(caller: Caller, job: Job, *, repeat: str | None, data: bytes | None = None) -> Response:
    """Leave a job to the workers, unless the same request did, and return it. Its bytes are counted once."""
    asked = digest_of(job.kind, job.corpus, sorted(job.arguments.items()), data or b"")
    uid = f"j{(digest_of(caller.key.uid, repeat) if repeat else digest_of(secrets.token_hex(16)))[:32]}"
    if data and not (repeat and caller.store.find_job(uid)):
        caller.store.spend_within(caller.key, size=len(data))
    caller.store.make_job(replace(job, uid=uid, key=caller.key.uid, owner=caller.key.owner), digest=asked, data=data)
    caller.worker.wake.set()
    return json_of(caller.store.job(uid), 202)


@router.post(
    "/corpora/{corpus}/documents",
    tags=["documents"],
    status_code=202,
    response_model=JOB,
    openapi_extra=FILE,
)
async def upload(
    request: Request,
    caller: Writer,
    corpus: str,
    name: Annotated[str, Query(description="Its file name, such as letters.pdf: it identifies the document.")],
    graph: Annotated[bool, Query(description="Whether to extract entities and relations.")] = True,
    repeat: Repeat = None,
) -> Response:
    """Index an uploaded file, whose bytes are the body, as a job. A document of the same name is replaced."""
    caller.store.check_upload(caller.corpus(corpus), name)
    data = await request.body()
    job = Job(uid="", kind="index", corpus=corpus, key="", owner="", arguments={"name": name, "graph": graph})
    return await asyncio.to_thread(left, caller, job, repeat=repeat, data=data)


@router.get("/corpora/{corpus}/documents", tags=["documents"], response_model=Page[DocumentRow])
def documents(caller: Reader, corpus: str, limit: Limit = 100, after: After = None) -> Response:
    """List the documents of a corpus by title."""
    found = caller.client.documents(corpus=caller.corpus(corpus))
    return page(found, lambda one: str(one["uid"]), after=after, limit=limit)


@router.delete("/corpora/{corpus}/documents/{document:path}", tags=["documents"], response_model=Deleted)
def delete_document(caller: Writer, corpus: str, document: str) -> Response:
    """Delete a document, by its uid or id, and what only it supported."""
    return json_of({"deleted": caller.client.delete(document=document, corpus=caller.corpus(corpus))})


@router.post("/corpora/{corpus}/jobs", tags=["jobs"], status_code=202, response_model=JOB)
def begin_job(caller: Writer, corpus: str, wanted: Wanted, repeat: Repeat = None) -> Response:
    """Begin a job on a corpus."""
    arguments = wanted.model_dump(exclude_none=True, exclude={"kind"}) if wanted.kind == "build" else {}
    caller.client.status(corpus=caller.corpus(corpus))
    if wanted.kind == "build":
        caller.client.plan_build(corpus=corpus, **arguments)
    return left(
        caller, Job(uid="", kind=wanted.kind, corpus=corpus, key="", owner="", arguments=arguments), repeat=repeat
    )


@router.get("/corpora/{corpus}/jobs", tags=["jobs"], response_model=JOBS)
def jobs(caller: Reader, corpus: str, limit: Limit = 100, after: After = None) -> Response:
    """List the jobs of a corpus, the newest first."""
    found = caller.store.jobs(corpus=caller.corpus(corpus))
    return page(found, lambda one: one.uid, after=after, limit=limit)


@router.get("/jobs/{job}", tags=["jobs"], response_model=JOB)
def job(caller: Reader, job: str) -> Response:
    """Show a job: its state, progress, report and error."""
    return json_of(_reached(caller, job))


@router.delete("/jobs/{job}", tags=["jobs"], status_code=202, response_model=JOB)
def cancel_job(caller: Writer, job: str) -> Response:
    """Cancel a job.

    One that runs ends at its next piece of work. What is done stays.
    """
    caller.store.cancel_job(_reached(caller, job).uid)
    return json_of(caller.store.job(job), 202)


def _reached(caller: Caller, uid: str) -> Job:
    found = caller.store.job(uid)
    if not caller.key.reaches(found.corpus):
        raise NotFoundError(f"job {uid!r} not found: list the jobs of its corpus")
    return found

"""Small data sets in every format, written to a folder for tests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write(folder: Path, files: Mapping[str, Any]) -> Path:
    """Write texts as they are, lists as JSON Lines (`.jsonl`) or JSON, and return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str):
            many = name.endswith(".jsonl")
            content = "".join(json.dumps(one) + "\n" for one in content) if many else json.dumps(content)
        path.write_text(content, encoding="utf-8")
    return folder


def question(**fields: Any) -> dict[str, Any]:
    """Return a valid line of questions.jsonl on HARBOUR, with these fields instead."""
    valid = {"id": "q1", "kind": "single", "question": "Who sold the bell?", "answer": "Rhee"}
    return {**valid, "evidence": [{"document": "log", "quote": "Rhee sold its bell"}], **fields}


HARBOUR: dict[str, Any] = {
    "documents/log.txt": "Log of the Aurora\n\nCaptain Rhee steers.\nRhee sold its\nbell to Moe. A bell is a bell.",
    "documents/letter.md": "A letter 🦊 of Moe\n\nMoe owes ten crowns.",
    "questions.jsonl": [question()],
}
TALK: dict[str, Any] = {
    "conversations.jsonl": [
        {"conversation": "c", "id": "m2", "time": "2023-02-04T19:12:00", "speaker": "Ann", "text": "It is\n  red.\n"},
        {
            "conversation": "c",
            "id": "m1",
            "time": "2023-02-04T09:05",
            "speaker": "Bo",
            "text": "Which colour?",
            "title": "Talk",
        },
        {"conversation": "d", "id": "m1", "time": "2023-02-05T08:00:00Z", "speaker": "Bo", "text": "Red it is."},
    ],
    "questions.jsonl": [question(evidence=[{"conversation": "c", "message": "m2"}])],
}
GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
    '<node id="RHEE"/></graph></graphml>'
)
LIGHTRAG: dict[str, Any] = {
    "kv_store_full_docs.json": {"doc-1": {"content": "\ufeffRhee steers. Rhee sold the bell."}},
    "kv_store_text_chunks.json": {
        "chunk-1": {"content": "Rhee steers.", "full_doc_id": "doc-1", "chunk_order_index": 0},
        "chunk-2": {"content": "Rhee sold the bell.", "full_doc_id": "doc-1", "chunk_order_index": 1},
    },
    "graph_chunk_entity_relation.graphml": GRAPHML,
}
LOCOMO: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_10_date_time": "12:09 am on 3 June, 2023",
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "I moved to Rome."}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a dog"},
            {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice dog."},
        ],
        "session_11_date_time": "1:00 pm on 4 June, 2023",
    },
    "qa": [
        {"question": "Where does Bo live?", "answer": "Rome", "evidence": ["D10:1"], "category": 4},
        {"question": "When?", "answer": 2023, "evidence": ["D2:1; D:2:02", "D9:9", "D"], "category": 2},
        {"question": "Who has a cat?", "adversarial_answer": "Bo", "evidence": ["D2:1"], "category": 5},
    ],
}
HOTPOTQA: dict[str, Any] = {
    "x.json": [
        {
            "_id": "h1",
            "type": "bridge",
            "question": "Where is the bell?",
            "answer": "Nordhavn",
            "supporting_facts": [["Bell", 1], ["Aurora", 0], ["Bell", 9]],
            "context": [["Bell", ["A bell.", " It hangs in Nordhavn."]]],
        }
    ],
    "x_corpus.json": {"Bell": ["A bell.", " It hangs in Nordhavn."], "Aurora": "A ferry with a bell."},
}
MUSIQUE: dict[str, Any] = {
    "y.json": [
        {
            "id": "2hop__1_2",
            "question": "Who led it?",
            "answer": "Hall",
            "paragraphs": [
                {"title": "Hall", "paragraph_text": "Hall led the society.", "is_supporting": True},
                {"title": "Hall", "paragraph_text": "A hall is a room.", "is_supporting": False},
            ],
        }
    ],
    "y_corpus.json": [
        {"title": "Hall", "text": "A hall is a room."},
        {"title": "Hall", "text": "Hall led the society."},
    ],
}
NOCHA: dict[str, Any] = {
    "tale.txt": "title: A Tale\n\nThe bell rang.",
    "tale.claims.json": [
        {"claim": "A bell rang.", "type": True, "index": 7},
        {"claim": "A gong rang.", "type": False, "index": 7},
    ],
}
LOOGLE: dict[str, Any] = {
    "long.jsonl": [
        {
            "title": "Bells",
            "input": "A bell rang. It was old.",
            "qa_pairs": "[{'Q': 'What?', 'A': 'A bell', 'S': ['A bell  rang.', 'Unlike it.'], 'type': 'computation'}]",
        },
        {"title": "Bells", "context": "Another text.", "question": "What?", "answer": "text", "evidence": "Another"},
        {"title": "Bells", "input": "A bell rang. It was old.", "qa_pairs": [{"Q": "How old?", "A": "Old"}]},
        {"title": "None", "input": "Summarize me.", "qa_pairs": "none"},
    ]
}

"""The embeddings file: what is written is read, other programs read it, and bad files are told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from likewise.evaluation import Embeddings, embeddings, read_embeddings, write_embeddings

ROWS = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
KEYS = [f"cats/{i}.jpg" for i in range(7)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "embeddings.parquet"


def write_table(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


# --- there and back


@pytest.mark.parametrize("kind", ["none", "indices", "names"])
def test_what_is_written_is_read(path, kind, monkeypatch):
    monkeypatch.setattr(embeddings, "BYTES_AT_ONCE", 24)  # two rows at a time
    labels = None if kind == "none" else np.array([0, 2, -1, 1, 1, -1, 0])
    names = ["zebra", "ant", "cat", "never seen"] if kind == "names" else None
    write_embeddings(path, Embeddings(KEYS, ROWS, labels, names, {"run": "runs/a", "size": 32}))
    found = read_embeddings(path)
    assert found.keys == KEYS and found.class_names == names
    assert found.metadata == {"run": "runs/a", "size": 32}
    np.testing.assert_array_equal(found.rows, ROWS)
    assert found.rows.dtype == np.float32
    if labels is None:
        assert found.labels is None
    else:
        np.testing.assert_array_equal(found.labels, labels)
    assert pq.ParquetFile(path).num_row_groups == 4


def test_other_programs_read_it(path):
    write_embeddings(path, Embeddings(KEYS[:3], ROWS[:3], [1, -1, 0], ["ant", "bee"]))
    frame = pd.read_parquet(path)
    assert frame["key"].tolist() == KEYS[:3]
    assert [None if pd.isna(x) else x for x in frame["label"]] == ["bee", None, "ant"]
    np.testing.assert_array_equal(np.stack(frame["embedding"]), ROWS[:3])


def test_tensors_and_other_types_are_taken(path):
    rows = torch.tensor(ROWS, dtype=torch.bfloat16, requires_grad=True)
    found = Embeddings(range(7), rows, torch.arange(7))
    assert found.keys == list("0123456") and found.rows.dtype == np.float32
    assert found.labels.dtype == np.int64


def test_a_failure_leaves_the_old_file(path, monkeypatch):
    write_embeddings(path, Embeddings(KEYS, ROWS))
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        write_embeddings(path, Embeddings(KEYS, ROWS + 1))
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


# --- files of others


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float16(), 3)]
)
def test_any_list_of_numbers_is_an_embedding(path, kind):
    values = [row.tolist() for row in np.round(ROWS)]
    if kind == pa.list_(pa.float16(), 3):
        values = [[np.float16(x) for x in row] for row in values]
    write_table(path, key=KEYS, embedding=pa.array(values, kind))
    np.testing.assert_array_equal(read_embeddings(path).rows, np.round(ROWS))


def test_names_without_a_list_are_sorted(path):
    names = ["bee", None, "ant", "bee", "cat", None, "ant"]
    write_table(path, key=KEYS, embedding=list(ROWS), label=names, other=range(7))
    found = read_embeddings(path)
    assert found.class_names == ["ant", "bee", "cat"]
    assert found.labels.tolist() == [1, -1, 0, 1, 2, -1, 0]


def test_integer_labels_and_keys(path):
    write_table(path, key=range(7), embedding=list(ROWS), label=[3, None, 0, 1, -1, 2, 2])
    found = read_embeddings(path)
    assert found.keys[:2] == ["0", "1"] and found.class_names is None
    assert found.labels.tolist() == [3, -1, 0, 1, -1, 2, 2]


def test_categories_are_names(path):
    label = pa.array(["b", "a", "b", None, "a", "a", "b"]).dictionary_encode()
    write_table(path, key=KEYS, embedding=list(ROWS), label=label)
    assert read_embeddings(path).labels.tolist() == [1, 0, 1, -1, 0, 0, 1]


def test_a_column_of_nothing_is_no_label(path):
    write_table(path, key=KEYS, embedding=list(ROWS), label=pa.nulls(7))
    assert (read_embeddings(path).labels == -1).all()


# --- labels by name


def test_labels_among_other_names():
    found = Embeddings(KEYS[:4], ROWS[:4], [0, 1, -1, 2], ["ant", "bee", "cat"])
    assert found.labels_among(["cat", "ant"]).tolist() == [1, -1, -1, 0]
    with pytest.raises(ValueError, match="no named labels"):
        Embeddings(KEYS, ROWS).labels_among(["ant"])


# --- bad files


def test_no_file(path):
    with pytest.raises(ValueError, match="embeddings.parquet is no file"):
        read_embeddings(path)
    path.write_text("key,embedding\n")
    with pytest.raises(ValueError, match="is no Parquet file"):
        read_embeddings(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": KEYS, "features": list(ROWS)}, "no column 'embedding', but 'key', 'features'"),
        ({"embedding": list(ROWS)}, "no column 'key'"),
        ({"key": KEYS, "embedding": KEYS}, "embedding is string; it has to be a list of numbers"),
        ({"key": KEYS, "embedding": [["a"]] * 7}, "has to be a list of numbers"),
        (
            {"key": KEYS, "embedding": [[1.0, 2.0]] * 4 + [[1.0]] * 3},
            "'cats/4.jpg' has an embedding of 1 numbers, those before it have 2",
        ),
        ({"key": KEYS, "embedding": [[1.0]] * 6 + [None]}, "'cats/6.jpg' has no embedding"),
        ({"key": KEYS, "embedding": [[1.0]] * 6 + [[np.nan]]}, "'cats/6.jpg' holds NaN"),
        ({"key": KEYS, "embedding": [[1.0]] * 6 + [[None]]}, "'cats/6.jpg' holds NaN"),
        ({"key": [*KEYS[:6], None], "embedding": list(ROWS)}, "row 6 has no key"),
        ({"key": [*KEYS[:6], KEYS[0]], "embedding": list(ROWS)}, "'cats/0.jpg' occurs twice"),
        ({"key": KEYS, "embedding": list(ROWS), "label": [0.5] * 7}, "neither names nor integers"),
        ({"key": KEYS, "embedding": list(ROWS), "label": [-5] * 7}, "labels go from -5 to -5"),
        ({"key": KEYS[:0], "embedding": pa.array([], pa.list_(pa.float32()))}, "has no rows"),
    ],
)
def test_bad_columns(path, columns, message):
    write_table(path, **columns)
    with pytest.raises(ValueError, match=message):
        read_embeddings(path)


def test_ragged_across_row_groups(path, monkeypatch):
    monkeypatch.setattr(embeddings, "BYTES_AT_ONCE", 1)
    write_table(path, key=KEYS, embedding=[[1.0, 2.0]] * 6 + [[1.0]])
    with pytest.raises(ValueError, match=r"'cats/6.jpg' has an embedding of 1 numbers.* 2"):
        read_embeddings(path)


def test_a_label_that_the_file_does_not_list(path):
    write_embeddings(path, Embeddings(KEYS, ROWS, [0] * 7, ["ant"]))
    table = pq.read_table(path)
    other = table.set_column(2, "label", pa.array(["ant"] * 6 + ["bee"]))
    pq.write_table(other, path)
    with pytest.raises(ValueError, match="label 'bee' is not among the file's class names"):
        read_embeddings(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": ROWS[:5]}, r"rows have shape \(5, 3\) for 7 keys"),
        ({"rows": ROWS[0]}, r"rows have shape \(3,\)"),
        ({"rows": ROWS * np.nan}, "embeddings hold NaN or infinity throughout"),
        ({"rows": np.where(ROWS > 0, ROWS, np.nan)}, "embedding of '.*' holds NaN or infinity"),
        ({"keys": [], "rows": ROWS[:0]}, "there are no rows"),
        ({"keys": ["a"] * 7}, "the key 'a' occurs twice"),
        ({"labels": [0] * 6}, "one class index per key"),
        ({"labels": [0.0] * 7}, "labels have type float64"),
        ({"labels": [-2] * 7}, "labels go from -2"),
        ({"labels": [3] * 7, "class_names": ["a", "b"]}, "class indices from 0 to 1"),
        ({"labels": [0] * 7, "class_names": ["a", "a"]}, "a name twice"),
        ({"metadata": {"x": ROWS}}, "metadata cannot be written as JSON"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        Embeddings(**{"keys": KEYS, "rows": ROWS, **changes})

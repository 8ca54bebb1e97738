"""Images in Parquet files, and in Hugging Face datasets."""

import json

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.data import BrokenImage, ParquetSource, memory, open_source, parquet, usual_size
from tests.data import contract
from tests.data.pictures import encoded, pixels, write

N = 6
PICTURES = [encoded(pixels(seed, height=3 + seed)) for seed in range(N)]
STRUCTS = [{"bytes": data, "path": f"{i}.png"} for i, data in enumerate(PICTURES)]
NAMES = ["dog", "cat", None, "cat", "dog", "dog"]


def write_table(path, notes=None, **columns):
    table = pa.table(columns)
    if notes is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps(notes)})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=2)
    return path


class OfThePictures(contract.SourceContract):
    def expected(self, index):
        return pixels(index, height=3 + index)


class TestBytes(OfThePictures):
    def make(self, folder):
        return open_source(write_table(folder / "x.parquet", data=PICTURES, label=NAMES))

    def test_keys_are_row_numbers(self, source):
        assert source.keys == ["0", "1", "2", "3", "4", "5"]

    def test_labels(self, source):
        assert source.labels.tolist() == [1, 0, -1, 0, 1, 1]
        assert source.class_names == ["cat", "dog"]
        assert source.description.endswith("x.parquet (2 classes, 5 labelled)")


class TestStruct(OfThePictures):
    def make(self, folder):
        extra = [b"not an image"] * N
        path = write_table(
            folder / "x.parquet", extra=extra, img=STRUCTS, label=[0, 1, 0, 1, 2, -1]
        )
        return open_source(path)

    def test_integer_labels_are_their_own_index(self, source):
        assert source.labels.tolist() == [0, 1, 0, 1, 2, -1]
        assert source.class_names == ["0", "1", "2"]


class TestLargeBinary(OfThePictures):
    def make(self, folder):
        array = pa.array(PICTURES, pa.large_binary())
        return open_source(write_table(folder / "x.parquet", image=array))


class TestShards(OfThePictures):
    def make(self, folder):
        for shard in (0, 1, 2):
            rows = slice(2 * shard, 2 * shard + 2)
            name = f"train-{(2, 10, 11)[shard]}.parquet"
            write_table(folder / "shards" / name, image=STRUCTS[rows], label=NAMES[rows])
        return open_source(folder / "shards")

    def test_another_file_shifts_no_key(self, source, tmp_path):
        assert source.keys[1:3] == ["train-2.parquet:1", "train-10.parquet:0"]
        write_table(tmp_path / "shards/train-1.parquet", image=STRUCTS[:2], label=NAMES[:2])
        more = open_source(tmp_path / "shards")
        assert more.keys[2:] == source.keys
        for key in source.keys:
            assert (more.read(more.index_of(key)) == source.read(source.index_of(key))).all()

    def test_by_pattern_or_list(self, source, tmp_path):
        pattern = open_source(str(tmp_path / "shards/train-1*.parquet"))
        assert pattern.keys == source.keys[2:]
        files = [tmp_path / "shards/train-10.parquet", str(tmp_path / "shards/train-11.parquet")]
        assert open_source(files).keys == source.keys[2:]


class TestDataset(OfThePictures):
    def make(self, folder):
        return open_source(self.dataset())

    def dataset(self):
        labels = [1, 0, -1, 0, 1, 1]
        features = datasets.Features(
            image=datasets.Image(), label=datasets.ClassLabel(names=["cat", "dog", "fox"])
        )
        return datasets.Dataset.from_dict({"image": STRUCTS, "label": labels}, features=features)

    def test_labels(self, source):
        assert source.labels.tolist() == [1, 0, -1, 0, 1, 1]
        assert source.class_names == ["cat", "dog", "fox"]


class TestSavedDataset(TestDataset):
    def make(self, folder):
        if not (folder / "saved").exists():
            self.dataset().save_to_disk(str(folder / "saved"))
        return open_source(folder / "saved")


class TestChosenRows(TestDataset):
    """A dataset with rows that were picked out: numbers are those of the rows that are left."""

    def make(self, folder):
        rows = self.dataset()
        return open_source(datasets.concatenate_datasets([rows, rows]).select(range(N)))


def test_written_by_hugging_face(tmp_path):
    TestDataset().dataset().to_parquet(str(tmp_path / "x.parquet"))
    source = open_source(tmp_path / "x.parquet")
    assert source.class_names == ["cat", "dog", "fox"]
    assert source.labels.tolist() == [1, 0, -1, 0, 1, 1]
    np.testing.assert_array_equal(source.read(4).permute(1, 2, 0).numpy(), pixels(4, height=7))


def test_images_by_path_in_a_dataset(tmp_path):
    (tmp_path / "a.png").write_bytes(PICTURES[0])
    rows = {"image": [str(tmp_path / "a.png"), str(tmp_path / "gone.png")]}
    rows = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    source = open_source(rows)
    np.testing.assert_array_equal(source.read(0).permute(1, 2, 0).numpy(), pixels(0, height=3))
    with pytest.raises(BrokenImage, match="No such file"):
        source.read(1)


class TestKeys:
    def test_column(self, tmp_path):
        keys = list("abcdef")
        path = write_table(tmp_path / "x.parquet", image=STRUCTS, id=keys)
        assert open_source(path, key_column="id").keys == keys
        rows = datasets.Dataset.from_dict({"image": STRUCTS, "id": keys})
        assert open_source(rows, key_column="id").keys == keys

    def test_repeated(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", image=STRUCTS, id=list("abcdea"))
        with pytest.raises(ValueError, match="'a' is the key of two items"):
            open_source(path, key_column="id")

    def test_no_such_column(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", image=STRUCTS)
        with pytest.raises(ValueError, match="no column 'id', only image"):
            open_source(path, key_column="id")
        with pytest.raises(ValueError, match="key_column is 'id'.*it has image"):
            open_source(datasets.Dataset.from_dict({"image": STRUCTS}), key_column="id")


class TestColumns:
    def test_notes_go_before_types(self, tmp_path):
        notes = {"info": {"features": {"b": {"_type": "Image"}, "kind": CLASSES}}}
        path = write_table(
            tmp_path / "x.parquet", notes, a=STRUCTS, b=STRUCTS, kind=[0] * N, label=[1] * N
        )
        source = open_source(path)
        assert source.class_names == ["x", "y"] and source.labels.tolist() == [0] * N

    def test_older_notes(self, tmp_path):
        older = {"_type": "ClassLabel", "names": {"0": "x", "1": "y"}}
        path = write_table(
            tmp_path / "x.parquet",
            {"info": {"features": {"label": older}}},
            image=STRUCTS,
            label=[1] * N,
        )
        assert open_source(path).class_names == ["x", "y"]

    @pytest.mark.parametrize("notes", [[], {"info": None}, {"info": {"features": {"label": 3}}}])
    def test_notes_of_another_kind_are_passed_over(self, tmp_path, notes):
        path = write_table(tmp_path / "x.parquet", notes, image=STRUCTS, label=NAMES)
        assert open_source(path).class_names == ["cat", "dog"]

    def test_name_decides_between_several(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", before=STRUCTS, image=STRUCTS)
        open_source(path)
        path = write_table(tmp_path / "x.parquet", before=STRUCTS, after=STRUCTS)
        with pytest.raises(ValueError, match=r"\(before, after\): name one as image_column"):
            open_source(path)
        assert len(open_source(path, image_column="after")) == N

    def test_several_labels(self, tmp_path):
        notes = {"info": {"features": {"fine": CLASSES, "coarse": CLASSES}}}
        path = write_table(
            tmp_path / "x.parquet", notes, image=STRUCTS, fine=[0] * N, coarse=[1] * N
        )
        with pytest.raises(ValueError, match=r"\(fine, coarse\): name one as label_column"):
            open_source(path)
        assert open_source(path, label_column="coarse").labels.tolist() == [1] * N
        assert open_source(path, label_column="none").labels is None

    def test_dictionary_and_truth_values(self, tmp_path):
        path = write_table(
            tmp_path / "x.parquet",
            image=STRUCTS,
            label=pa.array(NAMES).dictionary_encode(),
            good=[True, False, None, True, True, True],
        )
        assert open_source(path).class_names == ["cat", "dog"]
        source = open_source(path, label_column="good")
        assert source.class_names == ["False", "True"]
        assert source.labels.tolist() == [1, 0, -1, 1, 1, 1]

    def test_no_image(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", text=NAMES)
        with pytest.raises(ValueError, match="no column of encoded images, only text"):
            open_source(path)

    def test_wrong_names(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", image=STRUCTS, text=NAMES)
        with pytest.raises(ValueError, match="'pic', which is no column of .* image"):
            open_source(path, image_column="pic")
        with pytest.raises(ValueError, match="'text', which holds no image bytes"):
            open_source(path, image_column="text")
        with pytest.raises(ValueError, match="label_column is 'kind'.*it has image, text"):
            open_source(path, label_column="kind")

    def test_fractions_are_no_classes(self, tmp_path):
        ages = [0.5, 1, 2, 3, 4, 5]
        path = write_table(tmp_path / "x.parquet", image=STRUCTS, label=ages)
        assert open_source(path).labels is None
        with pytest.raises(ValueError, match="column 'label': label 0.5 is a fraction"):
            open_source(path, label_column="label")

    @pytest.mark.parametrize("missing", [None, np.nan, -1.0])
    def test_whole_floats_are_classes(self, tmp_path, missing):
        values = pa.array([2.0, missing, 0.0, missing, 2.0, 0.0], pa.float64(), from_pandas=False)
        path = write_table(tmp_path / "x.parquet", image=STRUCTS, label=values)
        rows = datasets.Dataset.from_dict({"image": STRUCTS, "label": values.to_pylist()})
        for source in (open_source(path), open_source(rows)):
            assert source.labels.tolist() == [2, -1, 0, -1, 2, 0]
            assert source.class_names == ["0", "1", "2"]

    @pytest.mark.parametrize("values", [[None] * N, [-2.0] * N, [np.inf] * N])
    def test_other_floats_are_no_classes(self, tmp_path, values):
        values = pa.array(values, pa.float32())
        path = write_table(tmp_path / "x.parquet", image=STRUCTS, label=values)
        assert open_source(path).labels is None

    def test_integers_go_before_floats(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", image=STRUCTS, label=[1.0] * N, target=[0] * N)
        assert open_source(path).labels.tolist() == [0] * N

    def test_labels_beyond_the_names(self, tmp_path):
        notes = {"info": {"features": {"label": CLASSES}}}
        path = write_table(tmp_path / "x.parquet", notes, image=STRUCTS, label=[2] * N)
        with pytest.raises(ValueError, match="outside of its 2 class names"):
            open_source(path)


CLASSES = {"_type": "ClassLabel", "names": ["x", "y"]}


class TestBadFiles:
    def test_rows_without_an_image(self, tmp_path):
        rows = [STRUCTS[0], None, {"bytes": None, "path": "a.png"}, STRUCTS[1]]
        source = open_source(write_table(tmp_path / "x.parquet", image=rows))
        for index in (1, 2):
            with pytest.raises(BrokenImage, match=f"{index}: the row has no image bytes"):
                source.read(index)
        np.testing.assert_array_equal(source.read(3).permute(1, 2, 0).numpy(), pixels(1, height=4))

    def test_bytes_that_are_elsewhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for row, name in enumerate(("whole.png", "beside/near.png", "here.png")):
            write(tmp_path / name, row)
        rows = [{"bytes": None, "path": str(tmp_path / "whole.png")}, STRUCTS[0]]
        rows += [{"bytes": None, "path": name} for name in ("near.png", "here.png", "gone.png")]
        rows += [{"bytes": None, "path": None}]
        write_table(tmp_path / "beside/a.parquet", image=STRUCTS[:2])
        write_table(tmp_path / "beside/b.parquet", image=rows)
        source = open_source([tmp_path / f"beside/{name}.parquet" for name in "ab"])
        for index, seed in ((2, 0), (4, 1), (5, 2)):
            np.testing.assert_array_equal(source.read(index).permute(1, 2, 0), pixels(seed))
        with pytest.raises(BrokenImage, match="no image bytes, and its path 'gone.png' is no file"):
            source.read(6)
        with pytest.raises(BrokenImage, match="b.parquet:5: the row has no image bytes$"):
            source.read(7)

    def test_all_broken_names_the_first(self, tmp_path):
        rows = {"image": [str(tmp_path / "gone.png"), str(tmp_path / "lost.png")]}
        rows = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
        table = rows.with_format("arrow")[:]  # as `datasets` holds it: {bytes: null, path}
        source = open_source(write_table(tmp_path / "x.parquet", image=table["image"]))
        first = r"seem to be broken, the first \(0: the row has no image bytes, .*gone.png' is no"
        with pytest.raises(ValueError, match=first):
            usual_size(source)

    @pytest.mark.parametrize("data", [b"", b"not parquet", b"PAR1....PAR1"])
    def test_no_parquet(self, tmp_path, data):
        (tmp_path / "x.parquet").write_bytes(data)
        with pytest.raises(ValueError, match="x.parquet cannot be read as Parquet"):
            open_source(tmp_path / "x.parquet")

    def test_damaged_inside(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", image=STRUCTS)
        data = bytearray(path.read_bytes())
        data[4:400] = b"\xff" * 396
        path.write_bytes(data)
        with pytest.raises(ValueError, match="x.parquet cannot be read"):
            open_source(path)

    def test_no_rows(self, tmp_path):
        path = write_table(tmp_path / "x.parquet", image=pa.array([], pa.binary()))
        with pytest.raises(ValueError, match="x.parquet has no images"):
            open_source(path)

    def test_an_empty_shard_is_fine(self, tmp_path):
        write_table(tmp_path / "a.parquet", image=pa.array([], pa.binary()))
        write_table(tmp_path / "b.parquet", image=PICTURES)
        assert len(open_source(tmp_path)) == N

    def test_other_columns_or_types_in_another_file(self, tmp_path):
        first = write_table(tmp_path / "a.parquet", image=STRUCTS)
        second = write_table(tmp_path / "b.parquet", picture=STRUCTS)
        with pytest.raises(ValueError, match="b.parquet has no column 'image', only picture"):
            open_source([first, second])
        write_table(second, image=PICTURES)
        with pytest.raises(ValueError, match="not of the type that it has in"):
            open_source([first, second])

    def test_parts_of_a_data_set_side_by_side(self, tmp_path):
        for name in ("train-0.parquet", "train-1.parquet", "test.parquet"):
            write_table(tmp_path / name, image=STRUCTS)
        with pytest.raises(ValueError, match=r"test, train: .*/train-0.parquet or as .*/train\*"):
            open_source(tmp_path)

    def test_other_tables_beside_images_are_passed_over(self, tmp_path):
        for name in ("train.parquet", "test.parquet"):
            write_table(tmp_path / name, key=["a.png"], embedding=[[0.5, 1.0]])
        write(tmp_path / "deep/a.png")
        assert open_source(tmp_path).keys == ["deep/a.png"]
        write_table(tmp_path / "x.parquet", image=STRUCTS)
        assert len(open_source(tmp_path)) == N

    def test_other_tables_alone_are_refused(self, tmp_path):
        write_table(tmp_path / "a.parquet", key=["a.png"], embedding=[[0.5, 1.0]])
        with pytest.raises(ValueError, match="a.parquet has no column of encoded images, only key"):
            open_source(tmp_path)
        write_table(tmp_path / "b.parquet", image=STRUCTS)
        with pytest.raises(ValueError, match="a.parquet has no column of encoded images"):
            open_source(tmp_path)

    def test_more_than_memory(self, tmp_path, monkeypatch):
        path = write_table(tmp_path / "x.parquet", image=STRUCTS)
        monkeypatch.setattr(parquet, "available_memory", lambda: 1000)
        with pytest.raises(ValueError, match=r"take .* and 1000 bytes of memory are free.*save_to"):
            open_source(path)
        assert memory.in_words(1000) == "1000 bytes"

    def test_no_files(self):
        with pytest.raises(ValueError, match="files is empty"):
            ParquetSource([])


class TestBadDatasets:
    def test_several_parts(self, tmp_path):
        parts = datasets.DatasetDict(test=TestDataset().dataset(), train=TestDataset().dataset())
        with pytest.raises(ValueError, match=r"parts test, train: give one, as dataset\['train'\]"):
            open_source(parts)
        parts.save_to_disk(str(tmp_path / "saved"))
        with pytest.raises(
            ValueError, match="parts test, train: give one of them, as .*/saved/train$"
        ):
            open_source(tmp_path / "saved")
        assert len(open_source(tmp_path / "saved/train")) == N

    def test_without_numbers(self):
        with pytest.raises(ValueError, match="IterableDataset: give a datasets.Dataset"):
            open_source(TestDataset().dataset().to_iterable_dataset())

    def test_damaged(self, tmp_path):
        for name in ("state.json", "dataset_info.json"):
            (tmp_path / name).write_text("{")
        with pytest.raises(ValueError, match="cannot be read as a saved dataset"):
            open_source(tmp_path)

"""Labels from values, CSV files, mappings and arrays."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likewise.data import Keyed, labelled, open_source, read_label_file
from likewise.data.labels import class_indices, natural_order
from tests.data.pictures import write

KEYS = ["cat/a.png", "cat/b.png", "dog/a.png", "dog/c.png"]


@pytest.fixture
def source(tmp_path):
    for seed, key in enumerate(KEYS):
        write(tmp_path / "photos" / key, seed)
    return open_source(tmp_path / "photos", folder_labels=False)


@pytest.fixture
def table(tmp_path):
    def write_lines(*lines, encoding="utf-8"):
        path = tmp_path / "labels.csv"
        path.write_text("\n".join(lines) + "\n", encoding=encoding)
        return path

    return write_lines


class TestClassIndices:
    def test_names_in_natural_order(self):
        labels, names = class_indices(["k10", "k9", "k1", "k9"])
        assert names == ["k1", "k9", "k10"] and labels.tolist() == [2, 1, 0, 1]

    def test_integers_are_their_own_index(self):
        labels, names = class_indices(np.array([4, 0, -1], dtype=np.int16))
        assert labels.tolist() == [4, 0, -1] and names == ["0", "1", "2", "3", "4"]

    def test_large_numbers_are_names(self):
        labels, names = class_indices([70_001, 9, 70_001])
        assert labels.tolist() == [1, 0, 1] and names == ["9", "70001"]

    def test_unknown(self):
        labels, names = class_indices([None, np.nan, "", " ", -1, -1.0, "a"])
        assert labels.tolist() == [-1] * 6 + [0] and names == ["a"]

    def test_unknown_as_text(self):
        labels, names = class_indices(["-1", "-1.0", "nan", " NaN", "None", b"-1", "none", "0"])
        assert labels.tolist() == [-1] * 6 + [1, 0] and names == ["0", "none"]

    def test_nothing_known(self):
        labels, names = class_indices([None, -1])
        assert labels.tolist() == [-1, -1] and names == []

    def test_whole_floats_are_integers(self):
        labels, names = class_indices([1.0, np.nan, 0.0])
        assert labels.tolist() == [1, -1, 0] and names == ["0", "1"]

    @pytest.mark.parametrize(("value", "match"), [(0.5, "fraction"), (-2, "label -2 is negative")])
    def test_no_classes(self, value, match):
        with pytest.raises(ValueError, match=match):
            class_indices([0, value])

    @given(st.lists(st.one_of(st.none(), st.text(max_size=3), st.booleans())))
    def test_name_of_the_index_is_the_value(self, values):
        labels, names = class_indices(values)
        assert len(set(names)) == len(names)
        for value, label in zip(values, labels, strict=True):
            expected = None if value is None else str(value).strip()
            expected = None if expected in ("", "-1", "nan", "NaN") else expected
            assert (None if label == -1 else names[label]) == expected


@given(st.lists(st.text(alphabet="aB10/-é²", max_size=6)))
def test_natural_order_is_an_order(names):
    assert sorted(names, key=natural_order) == sorted(reversed(names), key=natural_order)


def test_natural_order_by_example():
    names = ["9", "10", "a/x9", "a/x10", "a02", "a2", "a-b/x", "B1"]
    assert sorted(names[::-1], key=natural_order) == names


class TestTable:
    def test_by_path(self, source, table):
        other = open_source(source, labels=table("key,label", "dog/c.png,dog", "cat/a.png,cat"))
        assert other.labels.tolist() == [0, -1, -1, 1]
        assert other.class_names == ["cat", "dog"] and other.unmatched == 0
        assert other.description.endswith("(2 classes, 2 labelled)")
        assert source.labels is None

    def test_by_name_where_one_image_has_it(self, source, table):
        path = table("key,label", "b.png,cat", "c.png,dog", "a.png,cat")
        other = open_source(source, labels=path)
        assert other.labels.tolist() == [-1, 0, -1, 1]
        assert other.unmatched == 1  # a.png may be either of two images
        assert other.description.endswith("1 label without an image)")

    def test_ways_to_write_a_path(self, source, table):
        path = table("key,label", "./cat/a.png,x", "dog\\a.png,y", '"cat/b.png" ,z')
        assert open_source(source, labels=path).labels.tolist() == [0, 2, 1, -1]

    def test_forgiving_of_form(self, source, table):
        path = table(
            "Label, note,KEY", "", "x,,cat/a.png", ' y ,"a, b",cat/b.png', ",,dog/a.png",
            encoding="utf-8-sig",
        )  # fmt: skip
        assert open_source(source, labels=path).labels.tolist() == [0, 1, -1, -1]

    @pytest.mark.parametrize("unknown", ["-1", "-1.0", "nan", "NaN", "None", ""])
    def test_unknown_cells_are_no_class(self, source, table, unknown):
        lines = ["cat/a.png,cat", f"cat/b.png,{unknown}", f"dog/a.png,{unknown}", "cat/b.png,"]
        path = table("key,label", *lines)
        assert read_label_file(path)["cat/b.png"] == ""
        other = open_source(source, labels=path)
        assert other.labels.tolist() == [0, -1, -1, -1] and other.class_names == ["cat"]

    @pytest.mark.parametrize("separator", [";", "\t"])
    def test_other_separators(self, source, table, separator):
        lines = [("note", "Key", " label"), ("1,5", "cat/a.png", "x, y"), ("", "dog/c.png", "z")]
        path = table(*(separator.join(line) for line in lines), encoding="utf-8-sig")
        other = open_source(source, labels=path)
        assert other.labels.tolist() == [0, -1, -1, 1] and other.class_names == ["x, y", "z"]

    def test_goes_before_the_labels_of_the_data(self, source, table):
        folders = open_source(source.place)
        assert folders.labels.tolist() == [0, 0, 1, 1]
        path = table("key,label", "cat/a.png,fox")
        assert open_source(source.place, labels=path).labels.tolist() == [0, -1, -1, -1]

    def test_row_numbers(self, table):
        path = table("key,label", "2,b", "0,a", "7,a")
        source = open_source(np.zeros((3, 8, 8)), labels=path)
        assert source.labels.tolist() == [0, -1, 1] and source.unmatched == 1

    def test_said_twice_alike(self, source, table):
        path = table("key,label", "cat/a.png,x", "cat/a.png,x")
        assert open_source(source, labels=path).labels.tolist() == [0, -1, -1, -1]

    def test_adding_an_image_keeps_the_labels(self, source, table, tmp_path):
        path = table("key,label", "cat/b.png,x", "dog/c.png,y")
        write(tmp_path / "photos/ant/0.png")
        more = open_source(tmp_path / "photos", labels=path)
        assert more.label_name("cat/b.png") == "x" and more.label_name("dog/c.png") == "y"
        assert more.label_name("ant/0.png") is None


class TestBadTables:
    def test_no_match_shows_an_example_of_each(self, source, table):
        path = table("key,label", "IMG_7.jpg,cat")
        with pytest.raises(ValueError, match=r"none of the 1 keys.*'IMG_7.jpg'.*'cat/a.png'"):
            open_source(source, labels=path)

    def test_two_labels_for_one_key(self, source, table):
        path = table("key,label", "cat/a.png,x", "cat/a.png,y")
        with pytest.raises(ValueError, match="two labels for 'cat/a.png', 'x' and 'y'"):
            open_source(source, labels=path)

    def test_two_labels_by_path_and_name(self, source, table):
        path = table("key,label", "cat/b.png,x", "b.png,y")
        with pytest.raises(ValueError, match="as 'cat/b.png' and as 'b.png': keep one"):
            open_source(source, labels=path)

    @pytest.mark.parametrize("header", ["", "path,class", "key|label", "cat/a.png,cat"])
    def test_header(self, source, table, header):
        with pytest.raises(ValueError, match="columns key,label, with commas, semicolons or tabs"):
            open_source(source, labels=table(header, "cat/a.png,cat"))

    def test_header_with_two_separators(self, source, table):
        path = table("key;a,key,label,b;label", "cat/a.png;x,cat/b.png,y,b;z")
        with pytest.raises(ValueError, match="names key and label by commas and by semicolons"):
            open_source(source, labels=path)

    @pytest.mark.parametrize("unknown", ["-1", "nan", "None"])
    def test_nothing_known(self, source, table, unknown):
        with pytest.raises(ValueError, match="has no label"):
            open_source(source, labels=table("key,label", f"cat/a.png,{unknown}"))

    def test_missing_column(self, source, table):
        with pytest.raises(ValueError, match="line 3, is 'cat/b.png': a column is missing"):
            open_source(source, labels=table("key,label", "cat/a.png,x", "cat/b.png"))

    @pytest.mark.parametrize("lines", [[], ["cat/a.png,"]])
    def test_no_label(self, source, table, lines):
        with pytest.raises(ValueError, match="has no label"):
            open_source(source, labels=table("key,label", *lines))

    def test_other_encoding(self, source, table):
        path = table("key,label", "cat/a.png,f\xe9", encoding="latin-1")
        with pytest.raises(ValueError, match="is not UTF-8 text"):
            open_source(source, labels=path)

    def test_no_file(self, source, tmp_path):
        with pytest.raises(ValueError, match="no such file; give a CSV file"):
            open_source(source, labels=tmp_path / "gone.csv")

    def test_no_path(self):
        with pytest.raises(ValueError, match="labels is a ndarray: give the path of a CSV file"):
            read_label_file(np.array(["a", "b"]))

    def test_no_table(self, table):
        with pytest.raises(ValueError, match="is not a CSV file"):
            read_label_file(table("key,label", "a" * 200_000 + ",x"))


class TestMappingsAndArrays:
    def test_mapping(self, source):
        other = labelled(source, {"cat/a.png": 1, "dog/c.png": 0})
        assert other.labels.tolist() == [1, -1, -1, 0] and other.class_names == ["0", "1"]
        with pytest.raises(ValueError, match="labels is empty"):
            labelled(source, {})

    @pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
    def test_one_for_each(self, source, kind):
        other = labelled(source, kind([1, 0, -1, 1]))
        assert other.labels.tolist() == [1, 0, -1, 1] and other.class_names == ["0", "1"]

    def test_texts(self, source):
        assert labelled(source, ["b", "a", "", "b"]).labels.tolist() == [1, 0, -1, 1]

    def test_nan_among_texts(self, source):
        other = labelled(source, ["b", "a", np.nan, "b"])  # which NumPy turns into "nan"
        assert other.labels.tolist() == [1, 0, -1, 1] and other.class_names == ["a", "b"]

    def test_indices_of_the_classes_that_are_there(self):
        source = open_source("digits:test").subset(range(4))
        assert labelled(source, [3, -1, 0, 1]).class_names == [str(i) for i in range(10)]


class TestInClasses:
    def test_by_name(self):
        items = Keyed("abc", [1, -1, 0], ["dog", "cat"])
        other = items.in_classes(["ant", "cat", "dog"])
        assert other.labels.tolist() == [1, -1, 2] and other.class_names == ["ant", "cat", "dog"]

    def test_unused_class_may_be_missing(self):
        assert Keyed("ab", [0, 0], ["dog", "cat"]).in_classes(["dog"]).labels.tolist() == [0, 0]

    def test_strange_class(self):
        with pytest.raises(ValueError, match="class 'cat' is not among the 1 class names"):
            Keyed("ab", [0, 1], ["dog", "cat"]).in_classes(["dog"])

    def test_no_labels(self):
        with pytest.raises(ValueError, match="there are no labels here"):
            Keyed("ab").in_classes(["dog"])

"""Every kind of image becomes RGB, upright; what is broken is an error."""

import io

import numpy as np
import pytest
from PIL import Image

from likewise.data import decode
from tests.data.pictures import encoded, pixels, smooth


def shown(data, enough=0):
    return decode(data, enough).permute(1, 2, 0).numpy()


GREY = pixels(3)[..., 0]


class TestModes:
    def test_grey(self):
        np.testing.assert_array_equal(shown(encoded(GREY)), np.stack([GREY] * 3, axis=-1))

    def test_black_and_white(self):
        bits = GREY > 127
        expected = np.stack([np.where(bits, 255, 0)] * 3, axis=-1)
        np.testing.assert_array_equal(shown(encoded(Image.fromarray(bits))), expected)

    def test_palette(self):
        colours = np.array([[250, 0, 3], [1, 2, 240], [9, 200, 8]], dtype=np.uint8)
        places = np.random.default_rng(0).integers(0, 3, (6, 8), dtype=np.uint8)
        image = Image.fromarray(places, mode="P")
        image.putpalette(colours.tobytes())
        np.testing.assert_array_equal(shown(encoded(image)), colours[places])
        np.testing.assert_array_equal(shown(encoded(image, "GIF")), colours[places])

    def test_transparent_palette_shows_grey(self):
        image = Image.fromarray(np.array([[0, 1]], dtype=np.uint8), mode="P")
        image.putpalette(bytes([255, 0, 0, 0, 0, 255]))
        pixel = shown(encoded(image, transparency=0))
        assert pixel.tolist() == [[[128] * 3, [0, 0, 255]]]

    def test_transparent_colour_shows_grey(self):
        image = Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], dtype=np.uint8))
        assert shown(encoded(image, transparency=(1, 2, 3))).tolist() == [[[128] * 3, [4, 5, 6]]]

    def test_alpha_lies_over_grey(self):
        alpha = np.random.default_rng(1).integers(0, 256, (6, 8, 1))
        whole = np.concatenate([pixels(0), alpha.astype(np.uint8)], axis=-1)
        expected = pixels(0) * (alpha / 255) + 128 * (1 - alpha / 255)
        assert np.abs(shown(encoded(whole)) - expected).max() <= 1

    def test_grey_with_alpha(self):
        image = Image.fromarray(np.array([[[9, 255], [9, 0]]], dtype=np.uint8), mode="LA")
        assert shown(encoded(image)).tolist() == [[[9] * 3, [128] * 3]]

    @pytest.mark.parametrize("kind", ["PNG", "TIFF"])
    def test_sixteen_bits_keep_their_range(self, kind):
        wide = np.array([[0, 257, 32768, 65535]], dtype=np.uint16)
        assert shown(encoded(wide, kind))[0, :, 0].tolist() == [0, 1, 128, 255]

    def test_thirty_two_bits_are_stretched(self):
        wide = np.array([[-(2**30), 0, 2**30]], dtype=np.int32)
        assert shown(encoded(wide, "TIFF"))[0, :, 0].tolist() == [0, 128, 255]

    def test_floats(self):
        unit = np.array([[0.0, 0.5, 1.0]], dtype=np.float32)
        assert shown(encoded(unit, "TIFF"))[0, :, 0].tolist() == [0, 128, 255]
        assert shown(encoded(unit * 600 - 300, "TIFF"))[0, :, 0].tolist() == [0, 128, 255]
        assert shown(encoded(unit * 0 + 7, "TIFF"))[0, :, 0].tolist() == [0, 0, 0]
        with pytest.raises(ValueError, match="NaN"):
            decode(encoded(unit * np.nan, "TIFF"))

    def test_cmyk(self):
        image = Image.fromarray(smooth(16, 16)).convert("CMYK")
        data = encoded(image, "JPEG", quality=95)
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        np.testing.assert_array_equal(shown(data), expected)
        assert np.abs(shown(data).astype(int) - smooth(16, 16)).mean() < 4

    def test_animation_gives_its_first_frame(self):
        frames = [Image.fromarray(pixels(seed)) for seed in range(3)]
        data = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
        np.testing.assert_array_equal(shown(data), pixels(0))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_exif_orientation(orientation, kind):
    turned = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: a.transpose(1, 0, 2)[::-1, ::-1],
        8: lambda a: np.rot90(a, 1),
    }
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(pixels(0), kind, exif=exif)
    np.testing.assert_array_equal(shown(data), turned[orientation](pixels(0)))


class TestEnough:
    def test_a_large_jpeg_comes_smaller_and_alike(self):
        data = encoded(smooth(480, 640), "JPEG", quality=95)
        small = shown(data, 100)
        assert small.shape == (120, 160, 3)
        expected = np.asarray(Image.fromarray(smooth(480, 640)).resize((160, 120), Image.BOX))
        assert np.abs(small.astype(int) - expected).mean() < 2

    @pytest.mark.parametrize(("enough", "shape"), [(0, 480), (400, 480), (240, 240), (241, 480)])
    def test_never_below_what_is_enough(self, enough, shape):
        data = encoded(smooth(480, 640), "JPEG")
        assert decode(data, enough).shape[1] == shape

    def test_other_formats_are_untouched(self):
        np.testing.assert_array_equal(shown(encoded(smooth(64, 64)), 8), smooth(64, 64))


class TestBroken:
    @pytest.mark.parametrize("share", [0.1, 0.4, 0.7, 0.9])
    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
    @pytest.mark.parametrize("side", [16, 300])
    def test_truncated(self, share, kind, side):
        data = encoded(pixels(0, side, side), kind)
        with pytest.raises(Exception):  # noqa: B017 (decoders raise what they like)
            decode(data[: int(share * len(data))])

    @pytest.mark.parametrize("kind", ["JPEG", "PNG"])
    def test_cut_anywhere_is_broken_or_whole(self, kind):
        """Never half a picture; only a mark of the end may be missing."""
        data = encoded(pixels(0, 16, 16), kind)
        whole, kept = shown(data), 0
        for length in range(len(data)):
            try:
                image = shown(data[:length])
            except Exception:
                continue
            kept += 1
            np.testing.assert_array_equal(image, whole)
        assert kept < 32

    @pytest.mark.parametrize("data", [b"", b"not an image", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n"])
    def test_no_image(self, data):
        with pytest.raises(OSError, match="cannot identify"):
            decode(data)

    def test_too_large_to_be_honest(self, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
        with pytest.raises(Image.DecompressionBombError):
            decode(encoded(pixels(0)))


def test_jpeg_is_that_of_pillow():
    for side in (31, 32, 200):
        data = encoded(pixels(side, side, side + 3), "JPEG", quality=75)
        np.testing.assert_array_equal(shown(data), np.asarray(Image.open(io.BytesIO(data))))

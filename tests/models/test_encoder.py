"""Encoders by name: shapes, stems beside torchvision's, weights from files, bad input."""

from __future__ import annotations

import json

import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

from likewise.models import build_encoder, load_encoder
from likewise.models.weights import METADATA_KEY


def images(n: int = 2, size: int = 32, channels: int = 3) -> torch.Tensor:
    return torch.randn(n, channels, size, size, generator=torch.Generator().manual_seed(0))


def peer(*, small: bool = False) -> nn.Module:
    """Torchvision's ResNet-18, with the CIFAR stem where asked, and with awake statistics."""
    torch.manual_seed(3)
    model = torchvision.models.resnet18()
    if small:
        model.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
        model.maxpool = nn.Identity()
    model.fc = nn.Identity()
    with torch.no_grad():
        model(images(4))
    return model


# --- architecture -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "dim", "stem"),
    [
        ("tiny", 32, 128, "original"),
        ("tiny", 8, 128, "original"),
        ("resnet18", 32, 512, "small"),
        ("resnet10t", 64, 512, "small"),  # a deep stem: three convolutions
        ("resnet18", 65, 512, "original"),
        ("vit_tiny_patch16_224", 32, 192, "small"),
        ("vit_tiny_patch16_224", 96, 192, "original"),
        ("convnext_atto", 32, 320, "original"),
        ("mobilenetv3_small_050", 32, 1024, "original"),
    ],
)
def test_features_are_pooled_rows(name, size, dim, stem):
    encoder = build_encoder(name, image_size=size, seed=0)
    assert encoder.dim == dim
    assert encoder.name == name
    assert encoder.config["stem"] == stem
    assert encoder.training
    assert encoder(images(3, size)).shape == (3, dim)


def test_the_config_builds_it_again_and_is_json():
    encoder = build_encoder("resnet18", image_size=32, in_channels=1, seed=0)
    again = build_encoder(**json.loads(json.dumps(encoder.config)))
    again.load_state_dict(encoder.state_dict())
    x = images(channels=1)
    assert torch.equal(again.eval()(x), encoder.eval()(x))


def test_the_small_stem_keeps_the_map():
    encoder = build_encoder("resnet18", image_size=32, seed=0)
    sizes = []
    encoder.model.layer1.register_forward_hook(lambda m, a, y: sizes.append(y.shape[-1]))
    encoder(images())
    assert sizes == [32]
    assert encoder.model.conv1.weight.shape == (64, 3, 3, 3)


def test_a_transformer_has_patches_of_four_pixels_and_takes_other_crops():
    encoder = build_encoder("vit_tiny_patch16_224", image_size=32, seed=0)
    assert encoder.model.patch_embed.proj.weight.shape[-2:] == (4, 4)
    assert encoder(images(2, 16)).shape == (2, 192)


def test_tiny_is_small():
    count = sum(p.numel() for p in build_encoder("tiny").parameters())
    assert 100_000 <= count <= 300_000


def test_the_seed_decides_and_the_global_state_is_left_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second, other = (build_encoder("tiny", seed=s).state_dict() for s in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    name = "model.blocks.0.0.weight"
    assert torch.equal(first[name], second[name])
    assert not torch.equal(first[name], other[name])


def test_building_does_not_touch_running_statistics():
    state = build_encoder("tiny", seed=0).state_dict()
    assert state["model.blocks.0.1.num_batches_tracked"] == 0
    assert (state["model.blocks.0.1.running_mean"] == 0).all()


@pytest.mark.parametrize("name", ["tiny", "resnet18", "test_vit"])
def test_compiles_into_one_graph(name):
    encoder = build_encoder(name, image_size=32, seed=0)
    compiled = torch.compile(encoder, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(images()), encoder(images()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["tiny", "resnet18"])
def test_channels_last_goes_through(name):
    encoder = build_encoder(name, image_size=32, seed=0).eval()
    x = images()
    expected = encoder(x)
    encoder = encoder.to(memory_format=torch.channels_last)
    formats = []
    for module in encoder.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(
                lambda m, a, y: formats.append(y.is_contiguous(memory_format=torch.channels_last))
            )
    actual = encoder(x.to(memory_format=torch.channels_last))
    assert len(formats) >= 5 and all(formats)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


# --- weights from files -----------------------------------------------------------------------


@pytest.mark.parametrize(("stem", "small"), [("original", False), ("small", True)])
def test_torchvision_weights_give_torchvision_features(tmp_path, stem, small):
    model = peer(small=small)
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    encoder = build_encoder("resnet18", stem=stem, pretrained=tmp_path / "weights.pth")
    torch.testing.assert_close(encoder.eval()(images()), model.eval()(images()))
    assert encoder.weights == "120 tensors from weights.pth"


@pytest.mark.parametrize("prefix", ["module.", "backbone.", "encoder.model.", "_orig_mod.model."])
def test_prefixes_and_other_parts_are_seen_through(tmp_path, prefix):
    model = peer(small=True)
    state = {prefix + name: value for name, value in model.state_dict().items()}
    state |= {"projector.weight": torch.zeros(2), prefix + "fc.weight": torch.zeros(10, 512)}
    torch.save({"epoch": 3, "state_dict": state}, tmp_path / "run.ckpt")
    encoder = build_encoder("resnet18", pretrained=tmp_path / "run.ckpt")
    torch.testing.assert_close(encoder.eval()(images()), model.eval()(images()))
    assert encoder.weights == (
        "120 tensors from run.ckpt, 1 of a classifier dropped, 1 of other parts left out"
    )


def test_counters_of_batch_norm_may_be_missing(tmp_path):
    state = {k: v for k, v in peer(small=True).state_dict().items() if "num_batches" not in k}
    save_file(state, tmp_path / "old.safetensors")
    encoder = build_encoder("resnet18", pretrained=str(tmp_path / "old.safetensors"))
    assert encoder.weights == "100 tensors from old.safetensors"


def test_a_likewise_file_is_loaded_as_it_was_saved(tmp_path):
    encoder = build_encoder("resnet18", image_size=32, seed=4).eval()
    path = tmp_path / "encoder.safetensors"
    save_file(encoder.state_dict(), path, metadata=encoder.metadata())
    again = load_encoder(path).eval()
    assert again.config == encoder.config
    assert torch.equal(again(images()), encoder(images()))
    other_size = build_encoder("resnet18", image_size=48, pretrained=path)
    assert torch.equal(other_size.eval()(images()), encoder(images()))


# --- bad input --------------------------------------------------------------------------------


def test_stem_of_another_shape_is_named(tmp_path):
    torch.save(peer().state_dict(), tmp_path / "weights.pt")
    with pytest.raises(
        ValueError,
        match=r"conv1.weight is \(64, 3, 7, 7\) in the file and \(64, 3, 3, 3\) in the encoder.*"
        "the stem differs: give stem='original'",
    ):
        build_encoder("resnet18", image_size=32, pretrained=tmp_path / "weights.pt")


def test_weights_of_another_encoder_are_refused(tmp_path):
    torch.save(peer(small=True).state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ValueError, match=r"the file lacks layer1.2.conv1.weight.*the encoder that"):
        build_encoder("resnet34", pretrained=tmp_path / "weights.pt")


def test_unknown_tensors_are_refused(tmp_path):
    state = peer(small=True).state_dict() | {"layer5.weight": torch.zeros(1)}
    torch.save(state, tmp_path / "weights.pt")
    with pytest.raises(ValueError, match="the file has, in addition, layer5.weight"):
        build_encoder("resnet18", pretrained=tmp_path / "weights.pt")


def test_a_likewise_file_of_another_encoder_is_refused(tmp_path):
    encoder = build_encoder("resnet18", image_size=32, seed=0)
    path = tmp_path / "encoder.safetensors"
    save_file(encoder.state_dict(), path, metadata=encoder.metadata())
    with pytest.raises(ValueError, match="name is 'resnet34', but .* holds .* 'resnet18'"):
        build_encoder("resnet34", pretrained=path)
    with pytest.raises(ValueError, match="stem is 'original', but .* holds .* 'small'"):
        build_encoder("resnet18", image_size=224, pretrained=path)
    assert METADATA_KEY in encoder.metadata()


def test_a_file_that_does_not_say_its_encoder_needs_a_name(tmp_path):
    torch.save(peer().state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ValueError, match="does not say which encoder"):
        load_encoder(tmp_path / "weights.pt")


def test_broken_missing_and_strange_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        build_encoder("tiny", pretrained=tmp_path / "none.pt")
    with pytest.raises(ValueError, match="pretrained is 'imagenet': give True"):
        build_encoder("tiny", pretrained="imagenet")
    for name in ("half.pt", "half.safetensors"):
        (tmp_path / name).write_bytes(b"\x10\x00\x00")
        with pytest.raises(ValueError, match="half"):
            build_encoder("tiny", pretrained=tmp_path / name)
    torch.save({"answer": 42}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="holds no state dict"):
        build_encoder("tiny", pretrained=tmp_path / "other.pt")


def test_python_objects_are_not_unpickled(tmp_path):
    torch.save(nn.Linear(2, 2), tmp_path / "module.pt")
    with pytest.raises(ValueError, match="holds Python objects"):
        build_encoder("tiny", pretrained=tmp_path / "module.pt")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("resnt18", {}, "encoder is 'resnt18': the closest names are resnet18"),
        ("tniy", {}, "closest names are .*tiny"),
        ("resnet18.nobody", {}, "'resnet18' has no weights of that tag.*resnet18.a1_in1k"),
        ("resnet18", {"stem": "tiny"}, "stem is 'tiny'"),
        ("resnet18", {"image_size": 0}, "image_size is 0"),
        ("resnet18", {"image_size": 32.0}, "image_size is 32.0"),
        ("resnet18", {"in_channels": 0}, "in_channels is 0"),
        ("convnext_atto", {"stem": "small"}, "only ResNets and vision transformers"),
        ("tiny", {"stem": "small"}, "one stem only"),
        ("tiny", {"pretrained": True}, "no published weights"),
        ("resnet18", {"stem": "small", "pretrained": True}, "have the original stem"),
        ("coatnet_0_224", {"pretrained": True}, "timm has no weights of 'coatnet_0_224'"),
        ("vit_tiny_patch16_224", {"image_size": 100}, "patches of 16 .* such as 112"),
        ("inception_v3", {}, "image_size is 32: 'inception_v3' cannot be built"),
    ],
)
def test_bad_arguments(name, options, message):
    with pytest.raises(ValueError, match=message):
        build_encoder(name, **options)


def test_published_weights_without_a_network(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match="'resnet18' are not in the local cache.*give a file"):
        build_encoder("resnet18", pretrained=True)

"""A tiny model, made here and trained through transformers."""

import json
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from likewise.commands import main
from likewise.language import CausalMatrixLoss, MatrixCrossEntropy, MatrixTrainer
from likewise.language.examples import Pad, encode, read_examples

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven"]
WORDS = ["how", "many", "is", "plus", ".", "?", *NUMBERS]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A GPT-2 of two layers and a tokenizer of whole words, as save_pretrained writes them."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["<end>", "<unknown>", *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<end>", pad_token="<end>", unk_token="<unknown>"
    )
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(vocabulary),
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    path = tmp_path_factory.mktemp("model")
    GPT2LMHeadModel(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "train.jsonl"
    sums = [("one plus one", "two ."), ("one plus two", "three ."), ("two plus two", "four .")]
    lines = [{"prompt": f"how many is {a} ?", "answer": b} for a, b in sums * 4]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


@pytest.fixture
def model(folder):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder)


@pytest.fixture
def tokenizer(folder):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def test_only_the_answer_is_labelled(tokenizer):
    found = encode(tokenizer, "how many is one plus one ?", "two .", 32)
    words = tokenizer.convert_ids_to_tokens(found["input_ids"])
    assert words == ["how", "many", "is", "one", "plus", "one", "?", "two", ".", "<end>"]
    assert found["labels"] == [-100] * 7 + found["input_ids"][7:]
    short = encode(tokenizer, "how many is one plus one ?", "two .", 5)
    assert tokenizer.convert_ids_to_tokens(short["input_ids"]) == ["one", "?", "two", ".", "<end>"]
    assert short["labels"][:2] == [-100, -100]
    cut = encode(tokenizer, "how many ?", "two . . . . . .", 4)
    assert cut["labels"] == [-100, *cut["input_ids"][1:]]
    batch = Pad(0)([found, short])
    assert batch["labels"][1].tolist() == short["labels"] + [-100] * 5
    assert batch["attention_mask"].sum(1).tolist() == [10, 5]


def test_the_loss_of_a_batch_is_that_of_its_answers(model, tokenizer):
    batch = Pad(0)(
        [
            encode(tokenizer, "how many is one plus one ?", "two .", 32),
            encode(tokenizer, "how many ?", "four .", 32),
        ]
    )
    outputs = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
    loss = CausalMatrixLoss(model, tolerance=0.0)
    found = loss(outputs, batch["labels"])
    terms = []
    for i in range(2):
        for j in range(1, batch["labels"].shape[1]):
            label = batch["labels"][i, j]
            if label != -100:
                logits = outputs.logits[i, j - 1][None]
                matrix = MatrixCrossEntropy(model.transformer.wte, cross_entropy_weight=0.0)
                terms.append(F.cross_entropy(logits, label[None]) + matrix(logits, label[None]))
    assert len(terms) == 6
    torch.testing.assert_close(found, torch.stack(terms).mean(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(loss(outputs, batch["labels"], num_items_in_batch=12), found / 2)
    means = loss.means()
    assert sum(means.values()) == pytest.approx(found.item())
    assert loss.means() == {}


def test_prompts_get_no_gradient_from_the_loss(model, tokenizer):
    batch = Pad(0)([encode(tokenizer, "how many is one plus one ?", "two .", 32)])
    outputs = model(input_ids=batch["input_ids"])
    outputs.logits.retain_grad()
    CausalMatrixLoss(model)(outputs, batch["labels"]).backward()
    touched = outputs.logits.grad[0].abs().sum(1) > 0
    assert touched.tolist() == [False] * 6 + [True] * 3 + [False]


def test_accumulated_batches_are_one_batch(model, tokenizer, tmp_path):
    from transformers import AutoModelForCausalLM, TrainingArguments

    examples = [
        encode(tokenizer, "how many is one plus one ?", "two .", 32),
        encode(tokenizer, "how many ?", "four four four four .", 32),
    ]
    ends = []
    model.save_pretrained(tmp_path / "start")
    for batch, accumulate in ((2, 1), (1, 2)):
        trainer = MatrixTrainer(
            model=AutoModelForCausalLM.from_pretrained(tmp_path / "start"),
            args=TrainingArguments(
                output_dir=str(tmp_path / "out"),
                per_device_train_batch_size=batch,
                gradient_accumulation_steps=accumulate,
                max_steps=2,
                learning_rate=1e-3,
                optim="sgd",
                max_grad_norm=0.0,
                report_to="none",
                save_strategy="no",
                use_cpu=True,
                disable_tqdm=True,
                remove_unused_columns=False,
                logging_steps=1,
            ),
            train_dataset=examples,
            data_collator=Pad(0),
            loss_options={"tolerance": 0.0},
        )
        trainer.train()
        logged = [x for x in trainer.state.log_history if "loss" in x]
        assert len(logged) == 2
        for line in logged:
            parts = line["cross_entropy"] + line["matrix_cross_entropy"]
            assert line["loss"] == pytest.approx(parts, rel=1e-3)
        ends.append(trainer.model.transformer.wte.weight.detach().clone())
    torch.testing.assert_close(*ends, rtol=1e-5, atol=1e-6)


def finetune(folder, data, out, *options):
    arguments = ["--model", folder, "--data", data, "--out", out, "--schedule", "constant"]
    arguments += ["--batch_size", 4, "--log_every", 1, "--learning_rate", 0.01, *options]
    return main(["finetune-lm", *map(str, arguments)])


@pytest.mark.parametrize("rank", [0, 2])
def test_a_run_that_was_interrupted_ends_as_if_it_was_not(folder, data, tmp_path, rank):
    lora = ["--lora_rank", rank, "--lora_targets", "c_attn", "--save_every", 2]
    assert finetune(folder, data, tmp_path / "whole", "--steps", 4, *lora) == 0
    assert finetune(folder, data, tmp_path / "parts", "--steps", 2, *lora) == 0
    assert finetune(folder, data, tmp_path / "parts", "--steps", 4, "--resume", *lora) == 0
    name = "adapter_model.safetensors" if rank else "model.safetensors"
    whole, parts = (load_file(tmp_path / x / name) for x in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for key in whole:
        torch.testing.assert_close(whole[key], parts[key], msg=key)
    half = load_file(tmp_path / "parts" / "checkpoint-2" / name)
    assert any(not torch.equal(half[key], parts[key]) for key in half)


def test_the_loss_that_is_asked_for_is_trained(folder, data, tmp_path, capsys):
    whole = ["--steps", 60, "--lora_rank", 0]
    ends = {}
    for loss in ("ce", "ce+mce", "mce"):
        out = tmp_path / loss.replace("+", "-")
        assert finetune(folder, data, out, "--loss", loss, "--save_every", 60, *whole) == 0
        history = json.loads((out / "checkpoint-60" / "trainer_state.json").read_text())
        lines = [x for x in history["log_history"] if "loss" in x]
        ends[loss] = lines[-1]
        weights = {"ce": (1, 0), "ce+mce": (1, 1), "mce": (0, 1)}[loss]
        parts = lines[-1]["cross_entropy"], lines[-1]["matrix_cross_entropy"]
        total = weights[0] * parts[0] + weights[1] * parts[1]
        assert lines[-1]["loss"] == pytest.approx(total, rel=1e-2, abs=1e-3)
        assert lines[-1]["loss"] < lines[0]["loss"] - 1
    assert ends["ce"]["matrix_cross_entropy"] == 0
    assert 1 <= ends["mce"]["matrix_cross_entropy"] < 1.5
    capsys.readouterr()
    questions = tmp_path / "test.jsonl"
    questions.write_text('{"problem": "how many is one plus two ?", "solution": "boxed"}\n')
    arguments = ["--model", tmp_path / "ce-mce", "--data", questions, "--template", "{prompt}"]
    arguments += ["--task", "math", "--max_new_tokens", 3, "--out", tmp_path / "answers.json"]
    assert main(["evaluate-lm", *map(str, arguments)]) == 0
    assert "math: 0.0 % of 1 are right" in capsys.readouterr().out
    assert json.loads((tmp_path / "answers.json").read_text())["answers"][0]["text"] == "three ."


@pytest.mark.parametrize(
    "options, message",
    [
        (["--model", "nowhere"], "model is nowhere, which is no folder"),
        (["--data", "nothing.jsonl"], "data is nothing.jsonl, which is no file"),
        (["--batch_size", "0"], "batch_size is 0"),
        (["--lora_rank", "-1"], "lora_rank is -1"),
        (["--template", "Q:"], "put {prompt} where the prompt goes"),
        (["--answer_field", "reply"], "line 1 has no text 'reply', but prompt, answer"),
        (["--top_k", "0"], "top_k is 0"),
    ],
)
def test_bad_arguments_are_named(folder, data, tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as error:
        finetune(folder, data, tmp_path / "out", "--lora_rank", 0, "--steps", 1, *options)
    assert error.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_used_folder_is_not_written_over(folder, data, tmp_path, capsys):
    once = ["--steps", 1, "--lora_rank", 0, "--save_every", 1]
    assert finetune(folder, data, tmp_path, *once) == 0
    with pytest.raises(SystemExit):
        finetune(folder, data, tmp_path, *once)
    assert "holds checkpoint-1: resume it" in " ".join(capsys.readouterr().err.split())


def test_files_that_are_no_examples(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n")
    with pytest.raises(ValueError, match="holds no example"):
        read_examples(path, ["prompt"])
    path.write_text('{"prompt": "a"}\n{"prompt": \n')
    with pytest.raises(ValueError, match="line 2 is not JSON"):
        read_examples(path, ["prompt"])


def test_models_and_options_that_do_not_fit(model):
    with pytest.raises(ValueError, match="model is a Linear without output embeddings"):
        CausalMatrixLoss(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="reduction is 'mean': leave it out"):
        CausalMatrixLoss(model, reduction="mean")
    with pytest.raises(ValueError, match="labels are missing"):
        CausalMatrixLoss(model)({"logits": torch.zeros(1, 2, 3)}, None)
    with pytest.raises(ValueError, match="MatrixTrainer brings its own"):
        MatrixTrainer(model=model, compute_loss_func=print)


def test_neither_the_loss_nor_help_imports_transformers():
    code = (
        "import sys\n"
        "import likewise, likewise.language\n"
        "from likewise.commands import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('transformers' in sys.modules or 'peft' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0

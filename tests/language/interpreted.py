"""The GPU kernels in Triton's interpreter, which needs no GPU; run by test_device.py.

    TRITON_INTERPRET=1 python -W ignore -m tests.language.interpreted

The variable must be set before Triton is imported, hence a process of its own.
"""

import json

import torch

from likewise.language import MatrixCrossEntropy, device, device_quadrature, device_rows
from likewise.language.quadrature import estimate
from tests.language.test_loss import matrix_part, problem, relative

CASES = {
    "full": (48, 200, "peaked", {"products": 5, "tolerance": 0.0}),
    "full, more vectors than dimensions": (4, 60, "random", {"products": 5, "tolerance": 0.0}),
    "full, adaptive": (32, 150, "random", {"products": 2, "max_products": 8}),
    "full, in pieces": (32, 150, "wide", {"products": 2, "max_products": 4, "memory": 20_000}),
    "top": (48, 200, "peaked", {"top_k": 20, "products": 5, "tolerance": 0.0}),
    "top, more tokens than dimensions": (4, 60, "random", {"top_k": 12, "products": 5}),
    "top, adaptive": (48, 200, "wide", {"top_k": 12, "products": 2, "max_products": 8}),
}


def by_kernels(*given, **options):
    """Values and gradient, with proof that the kernels made them."""
    calls = []
    usual = device.all_positions
    device.all_positions = lambda *args: (calls.append(1), usual(*args))[1]
    try:
        found = matrix_part(*given, precision="bfloat16", **options)
    finally:
        device.all_positions = usual
    assert calls, "the plain path was taken"
    return found


def plainly(*given, **options):
    usual = device.serves
    device.serves = lambda *args: False
    try:
        return matrix_part(*given, precision="bfloat16", **options)
    finally:
        device.serves = usual


def case(d, n, kind, options):
    embedding, logits, labels = problem(d, n, kind, positions=2)
    embedding, logits = embedding.bfloat16(), logits.bfloat16().float()
    if "max_products" not in options:
        options = {**options, "max_products": options["products"]}
    exact_options = {key: options[key] for key in ("top_k",) if key in options}
    exact, slope = matrix_part(
        embedding.double(), logits.double(), labels, method="exact", **exact_options
    )
    found, gradient = by_kernels(embedding, logits, labels, **options)
    plain, usual = plainly(embedding, logits, labels, **options)
    return {
        "value": ((found - exact) / exact).abs().max().item(),
        "gradient": relative(gradient.double(), slope),
        "plain value": ((plain - exact) / exact).abs().max().item(),
        "plain gradient": relative(usual.double(), slope),
    }


def quadrature():
    """The small matrices, against the plain implementation of the same formulas."""
    generator = torch.Generator().manual_seed(0)
    k, c = 5, 3
    x = torch.randn(c, k, 40, generator=generator, dtype=torch.float64)
    x *= torch.rand(c, 1, 40, generator=generator, dtype=torch.float64) ** 4
    rest = x @ x.mT / 40
    v = torch.eye(k) + 0.01 * torch.randn(c, k, k, generator=generator)
    gram = (v.mT @ v).double()
    gram[1, 3] = gram[1, :, 3] = 0  # the space is exhausted
    rest[1, 3] = rest[1, :, 3] = 0
    rest[2, 0, 0] = torch.nan
    residual = torch.tensor([0.1, 0.0, 0.1], dtype=torch.float64)
    log_share = torch.tensor([-1.0, -8.0, -29.0], dtype=torch.float64)
    plain = estimate(gram, rest, residual, log_share)
    found = device_quadrature.rules(gram, rest, residual, log_share.exp())
    assert torch.equal(found.value.isnan(), torch.tensor([False, False, True]))
    pairs = [(found.value, plain.value), (found.error, plain.error), (found.own, plain.own)]
    squares = [f.double() @ f.double().mT for f in (found.factor, plain.factor)]
    errors = [((a - b).abs() / (b.abs() + 1e-9))[:2].max() for a, b in pairs]
    errors.append((squares[0] - squares[1])[0].abs().max() / squares[1][0].abs().max())
    return torch.stack(errors).tolist()


def selection():
    """Exactly the largest logits and the target, in every format, with ties and -inf."""
    wrong = 0
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        logits = (4 * torch.randn(3, 5000, generator=torch.Generator().manual_seed(1))).to(dtype)
        logits[1, 10:] = -torch.inf  # fewer than k are left
        logits[2] = logits[2].round()  # ties
        labels = torch.tensor([17, 4000, 3])
        position = torch.tensor([2, 0, 1])
        tokens, slot = device_rows.select(logits, position, labels, 24)
        for row, label, chosen, place in zip(logits[position], labels, tokens, slot, strict=True):
            raised = row.float()
            raised[label] = torch.inf
            best = raised.topk(24).values
            wrong += int(not torch.equal(raised[chosen.long()].sort(descending=True).values, best))
            wrong += int(len(set(chosen.tolist())) != 24) + int(chosen[place] != label)
    return wrong


def ignored_positions():
    """Losses and gradients where positions are ignored, with both losses, beside the plain way."""
    embedding, logits, labels = problem(16, 60, positions=4)
    embedding, logits = embedding.bfloat16(), logits.bfloat16().float()
    labels[1] = -100
    logits[3, 7] = -torch.inf
    out = []
    for top_k in (None, 8):
        options = {"top_k": top_k, "cross_entropy_weight": 0.5, "products": 3, "tolerance": 0.0}
        a, b = (f(embedding, logits, labels, **options) for f in (by_kernels, plainly))
        assert a[0][1] == 0 and not a[1][1].any()
        out += [((x - y).abs().max() / y.abs().max()).item() for x, y in zip(a, b, strict=True)]
    return max(out)


def diverged():
    embedding, logits, labels = problem(8, 40, positions=2)
    logits = logits.float()
    logits[1, 5] = torch.nan
    seen = []
    for top_k in (None, 8):
        value, gradient = by_kernels(
            embedding.bfloat16(), logits, labels, top_k=top_k, products=2, max_products=2
        )
        seen += [value.isnan().tolist(), gradient.isnan().any(1).tolist()]
    return seen


def confident():
    """Sure of a wrong token: the Krylov space ends, in bfloat16, long before the products do."""
    out = []
    for d, n, factor in ((16, 60, 13), (64, 200, 10)):
        embedding, logits, labels = problem(d, n, positions=2)
        given = embedding.bfloat16(), (factor * logits).bfloat16().float(), labels
        exact, slope = matrix_part(*(x.double() for x in given[:2]), labels, method="exact")
        value, gradient = by_kernels(*given)
        length = gradient.double().norm(dim=1) / slope.norm(dim=1)
        out.append([((value - exact) / exact).abs().max().item(), *length.tolist()])
    return out


def main():
    torch.set_num_threads(1)
    assert MatrixCrossEntropy and device_rows.INTERPRETED
    print(
        json.dumps(
            {
                "cases": {name: case(*given) for name, given in CASES.items()},
                "quadrature": quadrature(),
                "selection": selection(),
                "ignored": ignored_positions(),
                "diverged": diverged(),
                "confident": confident(),
            }
        )
    )


if __name__ == "__main__":
    main()

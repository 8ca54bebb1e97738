"""What every plan of batches promises. A test class inherits `BatchPlanContract` and says how to
make its plan and graph."""

from __future__ import annotations

import pickle

import pytest
import torch

from likewise import Graph
from likewise.training.batches import BatchPlan


class BatchPlanContract:
    n, batch_size = 50, 12
    sign_is_stored = True

    def sample_graph(self) -> Graph:
        raise NotImplementedError

    def make(self, *, batch_size: int | None = None, seed: int = 0) -> BatchPlan:
        raise NotImplementedError

    def batches(self, plan: BatchPlan, epoch: int, start: int = 0) -> list[list[int]]:
        return [index.tolist() for index in plan.epoch(epoch, start)]

    def test_an_epoch_has_whole_batches_and_drops_what_is_left(self):
        plan = self.make()
        batches = self.batches(plan, 0)
        assert len(batches) == len(plan) == self.n // self.batch_size
        assert all(len(batch) == self.batch_size for batch in batches)

    def test_no_sample_twice_in_a_batch(self):
        plan = self.make()
        for epoch in range(20):
            for batch in self.batches(plan, epoch):
                assert len(set(batch)) == len(batch)
                assert min(batch) >= 0 and max(batch) < self.n

    def test_index_is_a_tensor_of_its_own(self):
        index = next(self.make().epoch(0))
        assert index.dtype == torch.long and index.device.type == "cpu"
        assert index.untyped_storage().nbytes() == 8 * self.batch_size

    def test_same_seed_and_epoch_same_batches(self):
        for epoch in (0, 3):
            assert self.batches(self.make(), epoch) == self.batches(self.make(), epoch)

    def test_asking_for_an_epoch_does_not_change_another(self):
        plan = self.make()
        first = self.batches(plan, 1)
        self.batches(plan, 0)
        assert self.batches(plan, 1) == first

    def test_epochs_differ(self):
        plan = self.make()
        assert self.batches(plan, 0) != self.batches(plan, 1)

    def test_seeds_differ(self):
        assert self.batches(self.make(seed=0), 0) != self.batches(self.make(seed=1), 0)

    def test_start_is_the_tail(self):
        plan = self.make()
        whole = self.batches(plan, 2)
        for start in range(len(plan) + 2):
            assert self.batches(plan, 2, start) == whole[start:]

    def test_every_sample_can_come(self):
        plan = self.make()
        seen = {i for epoch in range(40) for batch in self.batches(plan, epoch) for i in batch}
        assert seen == set(range(self.n))

    def test_graph_is_a_function_of_the_index(self):
        """In any order, and for any samples, of which a batch of the plan is one case."""
        plan = self.make()
        whole = plan.graph(torch.arange(self.n)).dense()
        for index in plan.epoch(0):
            torch.testing.assert_close(plan.graph(index).dense(), whole[index][:, index])

    def test_graph_is_symmetric(self):
        whole = self.make().graph(torch.arange(self.n)).dense()
        torch.testing.assert_close(whole, whole.T)

    def test_graph_is_nonzero_where_the_graph_is(self):
        whole = self.make().graph(torch.arange(self.n)).dense()
        expected = self.sample_graph().dense()
        torch.testing.assert_close(whole.sign(), expected.sign())

    def test_known_pairs_stay_known(self):
        plan = self.make()
        known = self.sample_graph().known().dense()
        for index in plan.epoch(1):
            got = plan.graph(index).known().dense()
            torch.testing.assert_close(got, known[index][:, index])

    def test_nonnegative_is_never_claimed_wrongly(self):
        plan = self.make()
        for index in plan.epoch(0):
            graph = plan.graph(index)
            assert not graph.nonnegative or graph.dense().min() >= 0

    def test_graph_can_be_lifted_to_views(self):
        plan = self.make()
        index = next(plan.epoch(0))
        graph = plan.graph(index).views(2)
        assert graph.n == 2 * self.batch_size and graph.samples.n == self.batch_size
        expected = plan.graph(index).dense().repeat_interleave(2, 0).repeat_interleave(2, 1)
        torch.testing.assert_close(graph.dense(), expected)

    def test_pickled(self):
        plan = self.make()
        again = pickle.loads(pickle.dumps(plan))
        assert self.batches(again, 3) == self.batches(plan, 3)
        index = next(plan.epoch(3))
        torch.testing.assert_close(again.graph(index).dense(), plan.graph(index).dense())

    def test_no_step_asks_the_device(self):
        """Tensors of the device "meta" have no values: whoever looked at one would fail."""
        plan = self.make()
        moved = plan.to("meta")
        assert self.batches(moved, 0) == self.batches(plan, 0)
        for index in plan.epoch(0):
            graph = moved.graph(index)
            assert graph.device.type == "meta" and graph.n == self.batch_size
            if self.sign_is_stored:
                assert graph.nonnegative == plan.graph(index).nonnegative
        assert plan.graph(torch.arange(self.n)).device.type == "cpu"

    def test_a_batch_of_everything(self):
        plan = self.make(batch_size=self.n)
        (batch,) = self.batches(plan, 0)
        assert sorted(batch) == list(range(self.n))
        expected = self.sample_graph().dense()
        torch.testing.assert_close(plan.graph(torch.arange(self.n)).dense(), expected)

    def test_reason(self):
        assert len(self.make().reason) > 10

    @pytest.mark.gpu
    def test_no_step_waits_for_the_gpu(self):
        plan = self.make().to("cuda")
        expected = self.make()
        indices = list(plan.epoch(0))
        plan.graph(indices[0])
        torch.cuda.set_sync_debug_mode("error")
        try:
            graphs = [plan.graph(index) for index in indices]
        finally:
            torch.cuda.set_sync_debug_mode("default")
        for index, graph in zip(indices, graphs, strict=True):
            assert graph.device.type == "cuda"
            torch.testing.assert_close(graph.dense().cpu(), expected.graph(index).dense())

    # --- bad input --------------------------------------------------------------------------

    def test_rejects_a_batch_larger_than_the_data(self):
        with pytest.raises(ValueError, match=r"batch_size is 51, but there are 50 samples"):
            self.make(batch_size=51)

    @pytest.mark.parametrize("size", [0, -1, 2.5, True])
    def test_rejects_no_batch_size(self, size):
        with pytest.raises(ValueError, match="batch_size is"):
            self.make(batch_size=size)

    def test_rejects_a_negative_seed_epoch_and_start(self):
        with pytest.raises(ValueError, match="seed is -1"):
            self.make(seed=-1)
        with pytest.raises(ValueError, match="epoch is -1"):
            self.make().epoch(-1)
        with pytest.raises(ValueError, match="start is -2"):
            self.make().epoch(0, start=-2)

    def test_rejects_an_index_with_repeats_or_strangers(self):
        plan = self.make()
        with pytest.raises(ValueError, match="holds a sample twice"):
            plan.graph(torch.tensor([3, 1, 3]))
        with pytest.raises(IndexError, match="runs from 1 to 50, but there are 50"):
            plan.graph(torch.tensor([1, 50]))
        with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
            plan.graph(torch.tensor([[1, 2]]))

"""The PyTorch helpers, where PyTorch is."""

import os
import tempfile
import unittest

import berth
import berth.torch

try:
    import torch
except ImportError:
    torch = None


class Elastic(unittest.TestCase):
    def test_the_global_batch_stays(self):
        self.assertEqual(berth.torch.elastic(32, 0.1, 1), (32, 0.1))
        self.assertEqual(berth.torch.elastic(32, 0.1, 4), (8, 0.1))
        each, rate = berth.torch.elastic(32, 0.1, 3)  # 30 of 32 samples
        self.assertEqual(each, 10)
        self.assertAlmostEqual(rate, 0.1 * 30 / 32)
        self.assertEqual(berth.torch.elastic(2, 0.1, 4)[0], 1)

    def test_parts_hold_every_sample_once(self):
        for parts in (1, 2, 3, 7, 10, 99):
            pieces = list(berth.torch.split(range(10), parts))  # cut like a tensor
            self.assertEqual([i for piece, _ in pieces for i in piece], list(range(10)))
            self.assertAlmostEqual(sum(share for _, share in pieces), 1)
            self.assertEqual(len(pieces), min(parts, 10))
        pieces = [piece for piece, _ in berth.torch.split({"x": "abc", "y": (b"def",)}, 2)]
        self.assertEqual(pieces, [{"x": "ab", "y": (b"de",)}, {"x": "c", "y": (b"f",)}])


@unittest.skipIf(torch is None, "SKIP: torch is not installed (apt install python3-torch)")
class WithTorch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()
        self.inputs = torch.rand(10, 4).double()
        self.targets = torch.rand(10, 1).double()

    def gradient(self, sub_steps):
        self.model.zero_grad()
        criterion = torch.nn.MSELoss()
        loss = berth.torch.accumulate(None, (self.inputs, self.targets),
                                      lambda part: criterion(self.model(part[0]), part[1]), sub_steps=sub_steps)
        return loss, torch.cat([p.grad.flatten() for p in self.model.parameters()])

    def test_micro_batches_have_the_gradient_of_the_batch(self):
        loss, whole = self.gradient(1)
        for sub_steps in (2, 3, 4, 10, 20):  # also where the batch does not divide evenly
            part_loss, parts = self.gradient(sub_steps)
            self.assertTrue(torch.allclose(whole, parts, rtol=1e-12, atol=1e-15), sub_steps)
            self.assertTrue(torch.allclose(loss, part_loss, rtol=1e-12))

    def test_a_checkpoint_brings_everything_back(self):
        run = berth.training()
        run.resume(12, 3)
        optimizer = torch.optim.Adam(self.model.parameters())
        self.model(self.inputs).sum().backward()
        optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "last.pt")
            self.assertIsNone(berth.torch.restore(path, run, self.model))
            berth.torch.save(path, run, self.model, optimizer, samples=96)
            self.assertEqual(os.listdir(folder), ["last.pt"])
            drawn = torch.rand(3)
            weights = [p.clone() for p in self.model.parameters()]
            with torch.no_grad():
                for p in self.model.parameters():
                    p.zero_()
            fresh = torch.optim.Adam(self.model.parameters())
            again = berth.training()
            self.assertEqual(berth.torch.restore(path, again, self.model, fresh), {"samples": 96})
            self.assertEqual((again.iteration, again.epoch), (12, 3))
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(weights, self.model.parameters())))
            self.assertEqual(str(fresh.state_dict()), str(optimizer.state_dict()))
            self.assertTrue(torch.equal(drawn, torch.rand(3)))

    def test_a_checkpoint_that_fails_leaves_the_old_one(self):
        run = berth.training()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "last.pt")
            berth.torch.save(path, run, self.model, kept=1)
            with self.assertRaises(Exception):
                berth.torch.save(path, run, self.model, bad=lambda: None)  # cannot be written
            self.assertEqual(os.listdir(folder), ["last.pt"])
            self.assertEqual(berth.torch.restore(path, run, self.model), {"kept": 1})


if __name__ == "__main__":
    unittest.main()

"""The controller in simulated worlds, whose best size is known."""

import random

import pytest

from draftmesh.stages.draft.adaptive.controller import Controller, Round

PLAIN = 20.0


class World:
    """Drafts accepted with probability alpha per token; costs in milliseconds per round."""

    def __init__(self, alpha, draft, verify=0.5, fixed=0.0, rows=1, longest=16, jitter=0.05):
        self.alpha, self.draft, self.verify, self.fixed = alpha, draft, verify, fixed
        self.rows, self.jitter = rows, jitter
        self.random = random.Random(0)
        self.controller = Controller(longest)
        self.size = self.controller.wished
        self.settled = False

    def cost(self, size):
        return PLAIN + (self.fixed + (self.draft + self.verify) * size if size else 0.0)

    def rate(self, size):
        expected = sum(self.alpha**d for d in range(size + 1))
        return expected / self.cost(size)

    def run(self, rounds):
        for _ in range(rounds):
            accepted = []
            for _ in range(self.rows):
                count = 0
                while count < self.size and self.random.random() < self.alpha:
                    count += 1
                accepted.append(count)
            noise = 1 + self.jitter * self.random.random()
            if self.random.random() < 0.05:
                noise *= 4  # a hiccup of the machine
            seconds = self.cost(self.size) * noise / 1e3 if self.settled else None
            wished = self.controller.wished  # agreed on before the round is over
            self.controller.record(
                Round(self.size, [99] * self.rows, accepted, self.size > 0, seconds)
            )
            self.settled = wished == self.size
            self.size = wished

    @property
    def best(self):
        return self.controller.main.best


@pytest.mark.parametrize(
    ("alpha", "draft"), [(0.9, 0.5), (0.8, 2.0), (0.6, 3.0), (0.5, 1.0), (0.95, 4.0)]
)
@pytest.mark.parametrize("rows", [1, 6])
def test_a_size_close_to_the_best_is_found(alpha, draft, rows):
    world = World(alpha, draft, rows=rows)
    world.run(500)
    optimum = max(map(world.rate, range(17)))
    assert world.best > 0
    assert world.rate(world.best) > 0.93 * optimum
    used = world.controller.used
    mean = sum(world.rate(size) * n for size, n in used.items()) / used.total()
    assert mean > 0.85 * optimum


@pytest.mark.parametrize(("alpha", "draft"), [(0.0, 1.0), (0.2, 8.0), (0.05, 2.0)])
def test_drafting_that_does_not_pay_is_turned_off(alpha, draft):
    world = World(alpha, draft)
    world.run(1500)
    used = world.controller.used
    assert world.best == 0
    assert used[0] > 0.9 * used.total()
    assert used.total() - used[0] > 10, "it must be tried again now and then"
    assert "does not pay" in world.controller.main.reason()


def test_a_fixed_cost_is_seen_even_if_tokens_are_cheap():
    world = World(0.6, 0.2, fixed=60.0)
    world.run(600)
    assert world.best == 0


def test_it_comes_back_when_drafts_get_good():
    world = World(0.0, 2.0)
    world.run(300)
    assert world.best == 0
    world.alpha = 0.9
    world.run(1500)
    assert world.best > 2


def test_each_number_of_rows_has_its_own_costs():
    small, large = World(0.7, 1.0, rows=1), World(0.7, 1.0, rows=8)
    large.controller = small.controller
    small.run(300)
    large.verify = 60.0  # a large batch is bound by arithmetic: each more token costs
    large.run(300)
    lanes = small.controller.lanes
    assert lanes[1].best > 0
    assert lanes[4].best == 0


def test_before_anything_is_measured_it_says_so():
    controller = Controller(3)
    assert controller.main.best == controller.wished == 3
    assert "too few rounds" in controller.main.reason()


def test_sizes_stay_within_the_drafts_depth():
    world = World(1.0, 0.0, verify=0.0, longest=5)
    world.run(200)
    assert world.best == 5
    assert max(world.controller.used) == 5

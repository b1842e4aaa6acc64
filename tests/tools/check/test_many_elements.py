"""Large inputs: each element counts, and few passes over memory do."""

import time

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

from .wrong_gradients import normal, only, operation

COUNT = 2 * 10**5
SHAPES = [(COUNT,), (400, 500)]


def sine(x):
    return x * gnp.sin(x)


def sine_rule(dy, y, x):
    return dy * (gnp.sin(x) + x * gnp.cos(x))


def counting(forward):
    sizes = []

    def counted(*xs):
        sizes.append(int(np.prod(xs[0].shape)))
        return forward(*xs)

    return counted, sizes


@pytest.mark.parametrize("shape", SHAPES)
def test_few_passes_over_all_elements(shape):
    counted, sizes = counting(sine)
    assert gs.check(operation(counted, sine_rule), normal(*shape)).ok
    assert sizes.count(COUNT) < 20


@pytest.mark.parametrize("shape", SHAPES)
def test_few_passes_to_locate_one(shape):
    counted, sizes = counting(sine)
    report = gs.check(
        operation(counted, only(lambda i: i == 777, sine_rule)), normal(*shape)
    )
    (finding,) = report.findings
    place = list(map(int, np.unravel_index(777, shape)))
    assert finding.elements == f"element {place}"
    assert sizes.count(COUNT) < 40


@pytest.mark.parametrize("place", [0, 777, COUNT - 1])
def test_an_element_that_others_hide(place):
    """Its derivative is nearly zero, so that its differences settle last."""
    x = normal(COUNT)
    x[place] = 2.03  # x sin(x) is nearly at its top
    wrong = operation(sine, only(lambda i: i == place, sine_rule))
    (finding,) = gs.check(wrong, x).findings
    assert finding.elements == f"element [{place}]"


def of_its_place(x):
    """Elementwise, but another function of each element."""
    i = np.arange(int(np.prod(x.shape))).reshape(x.shape) % 7
    return gnp.sin(x) * gnp.asarray((1.0 + i).astype(x.dtype), like=x)


def of_its_place_rule(dy, y, x):
    i = np.arange(int(np.prod(x.shape))).reshape(x.shape) % 7
    return dy * gnp.cos(x) * gnp.asarray((1.0 + i).astype(x.dtype), like=x)


def test_what_depends_on_the_place_is_right():
    assert gs.check(operation(of_its_place, of_its_place_rule), normal(COUNT)).ok


def test_what_depends_on_the_place_is_wrong():
    rule = only(lambda i: i == 777, of_its_place_rule)
    (finding,) = gs.check(operation(of_its_place, rule), normal(COUNT)).findings
    assert finding.elements == "element [777]"


def times(a, b):
    return a * gnp.sin(b)


def test_two_arguments_of_which_one_is_wrong_somewhere():
    def rule(dy, y, a, b):
        db = only(lambda i: i == 777, lambda dy, y, b: dy * a * gnp.cos(b))
        return dy * gnp.sin(b), db(dy, y, b)

    (finding,) = gs.check(operation(times, rule), normal(COUNT), normal(COUNT)).findings
    assert (finding.argument, finding.elements) == ("b", "element [777]")


def test_jax_compiles_nothing_for_the_same_once_more():
    jax = pytest.importorskip("jax")
    op, times = operation(gnp.tanh, lambda dy, y, x: dy * (1 - y * y)), []

    def listen(event, seconds, **_):
        if "backend_compile" in event:
            times.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        assert gs.check.options(framework="jax")(op, normal(3, 4)).ok
        first = len(times)
        assert gs.check.options(framework="jax")(op, normal(3, 4)).ok
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert 0 < first < 15
    assert len(times) == first


@pytest.mark.parametrize("right", [True, False])
def test_a_part_of_them_if_the_time_is_short(right):
    """Each pass over all elements takes a tenth of the time."""

    def slow(x):
        time.sleep(0.3 if x.size == COUNT else 0.0)
        return sine(x)

    rule = sine_rule if right else lambda dy, y, x: 1.01 * sine_rule(dy, y, x)
    report = gs.check.options(seconds=3.0)(operation(slow, rule), normal(COUNT))
    assert report.ok == right, report
    assert report.verdict != "could not tell"
    if right:
        assert any("not reached in 3 s" in note for note in report.notes)

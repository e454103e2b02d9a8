"""The script for GPUs, on the CPU: it reaches its end, and notices what is not equal."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import exactness
from tests.gpu import check

ROOT = Path(__file__).parents[2]
SHORT = replace(check.TINY, tokens=16, repeats=1)


@pytest.mark.slow
def test_it_runs_to_its_end_and_prints_a_table():
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu.check", "--device", "cpu", "--tiny"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["| what | result |", "|---|---|"]
    assert all(line.count("|") == 3 for line in lines)
    for what in ("copy bandwidth", "plain", "to verify", "1B draft", "0.6B", "ids", "4-bit"):
        assert what in done.stdout
    assert "failed" not in done.stdout


def test_a_part_that_fails_says_why_and_the_others_run(monkeypatch):
    def broken(bench):
        raise RuntimeError("the reason\nand more")

    monkeypatch.setattr(check, "PARTS", (broken, check.nvml))
    bench = check.check("cpu", SHORT)
    assert bench.rows[0] == ("broken", "**failed**: RuntimeError: the reason")
    assert bench.rows[1][0] == "NVML"
    assert bench.unequal == []


@pytest.mark.slow
def test_ids_that_differ_fail_the_run(monkeypatch, capsys):
    """A target that rounds otherwise in blocks of more than one row."""
    monkeypatch.setattr(check, "TINY", SHORT)
    monkeypatch.setattr(check, "PARTS", (check.speed_up,))
    made = check.Bench.made

    def faulty(self, numbers, *, tied):
        model = made(self, numbers, tied=tied)
        forward = model.runner.forward
        model.runner.forward = lambda tokens, rows: (
            forward(tokens, rows) + torch.arange(model.vocab_size) * (len(tokens) > 1)
        )
        return model

    monkeypatch.setattr(check.Bench, "made", faulty)
    assert check.main(["--device", "cpu", "--tiny"]) == 1
    assert "**differs**" in capsys.readouterr().out


def test_a_check_that_is_not_passed_fails_the_run(monkeypatch):
    monkeypatch.setattr(exactness, "check", lambda model: False)
    monkeypatch.setattr(check, "PARTS", (check.exact,))
    assert check.check("cpu", SHORT).unequal


def test_equality_that_cannot_be_tried_fails_the_run(monkeypatch):
    def refuse(self, numbers, *, tied):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(check.Bench, "made", refuse)
    monkeypatch.setattr(check, "PARTS", (check.speed_up, check.nvml))
    bench = check.check("cpu", SHORT)
    assert bench.unequal == ["speed_up"]
    assert len(bench.rows) == 2

"""What showing an answer costs the GUI thread: streamed, opened, and code without an end.

    QT_QPA_PLATFORM=offscreen python -m tests.measure.rendering

Every piece is timed with the layout and the painting it causes, in milliseconds of the thread's
processor time, so that other programs on the machine do not count.
"""

import statistics
import time
from collections.abc import Iterator

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QVBoxLayout, QWidget

from app import resources
from app.widgets.text import Answer

PIECE = 20  # characters, about 5 tokens: what a flush brings at 150 tokens a second
SIZES = (4_000, 16_000, 64_000)

LESSON = '''## Reading one column, part {n}

A file of *many* gigabytes is read **row by row**; see [the manual](https://docs.python.org/3/)
and `csv.DictReader`. It costs $5 today and $10 tomorrow. The mean is a running sum, so memory
use stays flat however large the file is, and rows without a number are skipped and counted.

1. Open the file with `newline=""`.
2. Sum what can be read:
   - numbers as they are,
   - empty cells never.
3. Divide at the end.

```python
def column_mean(path: Path, column: str) -> tuple[float, int]:
    """Mean of one CSV column, and how many rows were skipped."""
    total, count, skipped = 0.0, 0, 0
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                total += float(row[column])  # part {n}
                count += 1
            except (TypeError, ValueError):
                skipped += 1
    return total / count, skipped
```

| part | rows | mean | skipped |
|:-----|-----:|:----:|--------:|
| {n} | 1,204 | 3.25 | 4 |
| next | 998 | 2.75 | 0 |
| last | 12 | 11.0 | 1 |

> Quoted: a mean without its count says little.

```rust
fn mean(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64; // part {n}
    if count > 0.0 { Some(values.iter().sum::<f64>() / count) } else { None }
}
```

'''


def lesson(size: int) -> str:
    """Markdown of `size` characters as models write it."""
    parts = (LESSON.replace("{n}", str(n)) for n in range(1 + size // 1_000))
    return "".join(parts)[:size]


class Page(QScrollArea):
    """A scroll area as wide as the transcript, followed at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.resize(760, 800)
        inner = QWidget()
        self.column = QVBoxLayout(inner)
        self.column.addStretch()
        self.setWidget(inner)
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(lambda _, high: bar.setValue(high))

    def add(self) -> Answer:
        """An empty answer at the end."""
        made = Answer("Answer")
        self.column.insertWidget(self.column.count() - 1, made)
        return made


def settle() -> None:
    """What the event loop would do before it waits: layout, timers, painting."""
    for _ in range(3):
        QApplication.sendPostedEvents()
        QApplication.processEvents()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def streamed(source: str, piece: int = PIECE) -> list[float]:
    """Milliseconds of each piece until it is on the screen."""
    page = Page()
    page.show()
    answer = page.add()
    settle()
    spent = []
    for end in pieces(len(source), piece):
        began = time.thread_time()
        answer.grow(source[:end], finished=False)
        settle()
        spent.append(1_000 * (time.thread_time() - began))
    began = time.thread_time()
    answer.grow(source, finished=True)
    settle()
    spent.append(1_000 * (time.thread_time() - began))
    page.close()
    page.deleteLater()
    settle()
    return spent


def pieces(length: int, piece: int) -> Iterator[int]:
    """Where each piece ends."""
    yield from range(piece, length + piece, piece)


def opened(count: int, size: int) -> float:
    """Milliseconds to build and show one of `count` finished answers of `size` characters."""
    page = Page()
    page.show()
    settle()
    source = lesson(size)
    began = time.thread_time()
    for _ in range(count):
        page.add().grow(source, finished=True)
    settle()
    spent = 1_000 * (time.thread_time() - began) / count
    page.close()
    page.deleteLater()
    settle()
    return spent


def report(name: str, spent: list[float]) -> None:
    """One line of numbers."""
    ordered = sorted(spent)
    last = spent[-100:]
    print(
        f"{name:24} mean {statistics.mean(spent):7.2f}  last hundred {statistics.mean(last):7.2f}"
        f"  p99 {ordered[int(len(ordered) * 0.99)]:7.2f}  worst {ordered[-1]:7.2f}"
        f"  total {sum(spent) / 1_000:6.2f} s",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    app = QApplication([])
    resources.apply_theme(app, "light")
    streamed(lesson(1_500))  # imports
    costs = {}
    for size in SIZES:
        spent = streamed(lesson(size))
        costs[size] = statistics.mean(spent[-1 - size // PIECE // 4 : -1])
        report(f"markdown {size // 1_000}k", spent)
    print(f"last quarter, 64k to 4k: {costs[64_000] / costs[4_000]:.2f}")
    code = "```python\n" + "".join(f"total_{n} = add({n}, other)  # n\n" for n in range(5_000))
    spent = streamed(code, len(code) // 5_000)
    report("5,000 lines of code", spent)
    print(f"last hundred to first: {sum(spent[-101:-1]) / sum(spent[:100]):.2f}")
    report("line of 200,000", streamed("word " * 40_000, 200))
    report("table of 400 rows", streamed("|a|b|c|\n|-|-|-|\n" + "|1|two|three|\n" * 400))
    report("list of 500", streamed("".join(f"{n}. item *{n}*\n" for n in range(1, 501))))
    print(f"opening, 1.5k characters: {opened(50, 1_500):.2f} an answer")


if __name__ == "__main__":
    main()

"""The table of a study: what is counted, and what the page says."""

from __future__ import annotations

from dataclasses import replace

from made_study import AP50, STUDY, made_result

from ptedge.training.study.plan import Spread
from ptedge.training.study.result import Best, Result, Scores
from ptedge.training.study.table import gap_closed, median_and_range, paired_differences, table


def made_results() -> list[Result]:
    return [made_result(row.name, seed, AP50[row.name] + 0.01 * seed) for row in STUDY.row for seed in STUDY.seeds]


def cells_of(page: str, row: str) -> list[str]:
    line = next(line for line in page.splitlines() if line.startswith(f"| {row} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_median_and_range__by_hand() -> None:
    assert median_and_range([1.0, 4.0, 2.0]) == "2.0 (1.0 to 4.0)"
    assert (median_and_range([1.25], 2), median_and_range([])) == ("1.25", "-")


def test_differences_and_gap__seed_by_seed() -> None:
    scores = {("a", 0): 80.0, ("a", 1): 70.0, ("a", 2): 5.0, ("s", 0): 60.0, ("s", 1): 75.0}
    scores |= {("o", 0): 100.0, ("o", 1): 75.0}
    assert paired_differences(scores, "a", "s") == [20.0, -5.0]  # seed 2 has no partner
    assert gap_closed(scores, "a", "s", "o") == [0.5]  # seed 1 has no gap


def test_table__says_what_it_should() -> None:
    page = table(STUDY, made_results())
    cells = cells_of(page, "adapted")
    # AP50 80 and 81, source 40 and 41, oracle 90 and 91
    assert "80.5 (80.0 to 81.0)" in cells and "+40.0 (+40.0 to +40.0)" in cells
    assert "0.80 (0.80 to 0.80)" in cells and "60.2" in cells
    assert "| row | seed 0 | seed 1 |" in page and "| oracle | 90.0 | 91.0 |" in page
    assert table(STUDY, []).endswith("No run is finished.\n")


def test_table__best_is_named_an_oracles_choice() -> None:
    first, *others = made_results()
    page = table(STUDY, [replace(first, best=Best("step_000004", 0.85, 5)), *others])
    assert "AP50, best by target labels" in page and "an oracle's choice" in page and "| 85.0 |" in page


def test_table__every_column_has_its_own_number() -> None:
    result = made_result(
        "adapted", 0, 0.8, last=Scores(0.8, 0.5, 0.6), chosen=Scores(0.7, 0.1, 0.1), seconds=33.0, guard_trips=2
    )
    page = table(STUDY, [result])
    assert dict(zip(cells_of(page, "row"), cells_of(page, "adapted"), strict=True)) == {
        "row": "adapted",
        "seeds": "1",
        "AP50, last": "80.0",
        "AP50, chosen": "70.0",
        "AP75": "50.0",
        "AP": "60.0",
        "AP50 minus source": "-",  # not finished
        "gap closed": "-",
        "within 1 sigma": "0.50",
        "guard trips": "2",
        "seconds": "33",
        "K2C": "60.2",
    }


def test_table__spread_of_the_medians_not_of_the_seeds() -> None:
    study = replace(STUDY, spread=(Spread("tau", ("adapted", "source", "oracle"), (("paper", 9.6),)),))
    results = [made_result("adapted", seed, ap) for seed, ap in enumerate((0.1, 0.5, 0.6))]
    results.append(made_result("source", 0, 0.3))
    page = table(study, results)
    # medians 50 and 30; the oracle is not finished
    assert cells_of(page, "tau") == ["tau", "2 of 3", "40.0 (30.0 to 50.0)", "20.0", "10.0", "9.6"]
    # the highest stands between the others
    page = table(study, [*results, made_result("oracle", 0, 0.4)])
    assert cells_of(page, "tau")[1:4] == ["3 of 3", "40.0 (30.0 to 50.0)", "20.0"]
    study = replace(study, spread=(replace(study.spread[0], rows=("source", "adapted", "oracle")),))
    assert cells_of(table(study, [*results, made_result("oracle", 0, 0.4)]), "tau")[3] == "20.0"

#!/usr/bin/env python3
"""Logistic regression on the flights: the AUC that examples/wide_and_deep has to reach.

usage: tests/bench/flights_baseline.py [CSV]     needs scikit-learn (pip install scikit-learn)

Same flights, columns and split as the example's prepare_data.py, one-hot features, scikit-learn's
LogisticRegression. Its C is chosen on August and September after training on January to July; then it is
trained on January to September and tested on October to December. Prints both AUCs. CSV: the flights, when
they should not be downloaded.
"""
import csv
import sys
from pathlib import Path

import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "wide_and_deep"
CHOICES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def read(source, prepare):
    """month[n], label[n] and columns[n, 10] (text) of the flights."""
    with prepare.open_csv(source) as text:
        flights = [found for flight in csv.DictReader(text) if (found := prepare.columns_of(flight))]
    month = numpy.array([month for month, _ in flights])
    late = numpy.array([columns[0] for _, columns in flights])
    rows = [list(map(str, columns[1:])) for _, columns in flights]
    for row in rows:
        # As reader.py has them: a flight number belongs to its carrier,
        # distances count in steps of 250 miles.
        row[5] = row[4] + row[5]
        row[9] = str(int(row[9]) // 250)
    return month, late, numpy.array(rows)


def auc(columns, late, fit, judge, c):
    """The AUC on the rows `judge` of a model trained on the rows `fit`."""
    encoder = OneHotEncoder(handle_unknown="ignore").fit(columns[fit])
    model = LogisticRegression(C=c, max_iter=500).fit(encoder.transform(columns[fit]), late[fit])
    return roc_auc_score(late[judge], model.decision_function(encoder.transform(columns[judge])))


def main(arguments):
    if {"-h", "--help"} & set(arguments):
        print(__doc__.strip())
        return 0
    sys.path.insert(0, str(EXAMPLE))
    import prepare_data as prepare

    source = Path(arguments[0]) if arguments else prepare.download(EXAMPLE / "data" / "download")
    if source is None:
        return 1
    month, late, columns = read(source, prepare)
    tried = {c: auc(columns, late, month <= 7, (month == 8) | (month == 9), c) for c in CHOICES}
    best = max(tried, key=tried.get)
    print("validation AUC, August and September:",
          ", ".join(f"C={c}: {value:.4f}" for c, value in tried.items()))
    print(f"test AUC, October to December: {auc(columns, late, month <= 9, month >= 10, best):.4f} "
          f"(C={best})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

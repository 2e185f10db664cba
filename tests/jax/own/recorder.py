# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that writes down each test as it starts and as it ends.

The lines outlive the process: a test that started and has no end is the one that
the process died in. RECORD names the file, one JSON object a line; RECORD_SKIP
names a file of tests, one a line, that are left out, RECORD_ONLY one of tests that
alone are run.
"""

import json
import os

import pytest

WORST = ["passed", "skipped", "failed"]


def listed(variable):
    path = os.environ.get(variable)
    if not path:
        return None
    with open(path) as f:
        return set(f.read().split("\n")) - {""}


class Recorder:
    def __init__(self):
        self.file = open(os.environ["RECORD"], "a")
        self.outcome, self.text = "passed", ""

    def write(self, **what):
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    def pytest_collection_modifyitems(self, config, items):
        skip, only = listed("RECORD_SKIP") or set(), listed("RECORD_ONLY")
        chosen = [i for i in items
                  if i.nodeid not in skip and (only is None or i.nodeid in only)]
        config.hook.pytest_deselected(items=[i for i in items if i not in set(chosen)])
        items[:] = chosen

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(collect=report.nodeid, text=str(report.longrepr)[-300:])
        elif report.skipped:
            self.write(collect_skipped=report.nodeid, text=str(report.longrepr)[-300:])

    def pytest_runtest_logstart(self, nodeid, location):
        self.outcome, self.text = "passed", ""
        self.write(start=nodeid)

    def pytest_runtest_logreport(self, report):
        if WORST.index(report.outcome) > WORST.index(self.outcome):
            self.outcome = report.outcome
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else str(report.longrepr)
            self.text = text[:1500]

    def pytest_runtest_logfinish(self, nodeid, location):
        self.write(end=nodeid, outcome=self.outcome, text=self.text)


def pytest_configure(config):
    config.pluginmanager.register(Recorder(), "records")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    session.config.pluginmanager.get_plugin("records").write(finished=int(exitstatus))

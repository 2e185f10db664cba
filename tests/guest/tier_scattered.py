# SPDX-License-Identifier: Apache-2.0
"""The kernel driver without an IOMMU: what is not contiguous is in many pieces."""

import os

import tier_driver


def tier_scattered(machine):
    before = os.environ.get("CMDLINE")
    os.environ["CMDLINE"] = f"{before or ''} intel_iommu=off"
    try:
        return tier_driver.tier_driver(machine)
    finally:
        if before is None:
            del os.environ["CMDLINE"]
        else:
            os.environ["CMDLINE"] = before

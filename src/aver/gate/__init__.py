"""May it happen: policy, learned risk and human approval, joined into one decision."""

"""Commands that belong to no part: eval, data, inspect, doctor."""

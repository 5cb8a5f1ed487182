"""Who computes kernel values and solutions: an engine for each kind of device."""

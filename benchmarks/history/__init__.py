"""Speed over the last commits, as pages of graphs: airspeed velocity over the suites in `suites/`."""

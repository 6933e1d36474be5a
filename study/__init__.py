"""What the notebooks and tests need to repeat the paper: data, protocol, statistics, tables, figures, claims."""

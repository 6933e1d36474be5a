"""What `make` calls: benchmarks, the runner of the notebooks, and the pages made of them."""

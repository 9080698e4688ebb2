"""Running experiments: agent loop, backbones, scheduling on Ray, ledger, MLflow and the command line."""

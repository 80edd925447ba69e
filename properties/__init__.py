"""What must hold of any implementation: operators, laws, the oracle and the bounds."""

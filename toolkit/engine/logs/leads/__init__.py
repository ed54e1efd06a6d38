"""Find the earlier or later line to which a root line refers, such as the error before an abort."""

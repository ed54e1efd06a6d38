"""Find the line to which a root line refers, such as the error before an abort."""

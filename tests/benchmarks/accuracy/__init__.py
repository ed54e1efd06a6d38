"""The accuracy that trainings come to on whole data sets, launched as a person launches them."""

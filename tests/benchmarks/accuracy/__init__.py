"""The accuracy of trainings on whole data sets, launched as users launch them."""

"""Launch trainings on whole data sets as users do, and measure their accuracy."""

// Direct convolutions.

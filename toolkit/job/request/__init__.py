"""The user's request and its sources: settings, options, keys, images and data."""

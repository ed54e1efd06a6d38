"""What the user asks for, and where it is: settings, options, keys, images, data."""

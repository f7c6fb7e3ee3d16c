"""Headers of image files: size, orientation, bits and number of pictures, read before anything is decoded."""

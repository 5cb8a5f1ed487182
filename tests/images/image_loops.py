"""The results of the image transformers, computed by plain loops for tiny images."""

import math

import numpy as np


def gradient(image, r, c):
    """Return the gradient (down, right) of the first channel in which it is longest."""
    best = (0.0, 0.0)
    for k in range(image.shape[2]):
        down = right = 0.0
        if 0 < r < len(image) - 1:
            down = float(image[r + 1, c, k]) - float(image[r - 1, c, k])
        if 0 < c < image.shape[1] - 1:
            right = float(image[r, c + 1, k]) - float(image[r, c - 1, k])
        if math.hypot(down, right) > math.hypot(*best):
            best = (down, right)
    return best


def cell_histograms(image, cell, bins, signed, soft):
    """Return histograms (cell rows, cell columns, bins); ``image`` is (h, w, c)."""
    h, w = image.shape[:2]
    turn = 360.0 if signed else 180.0
    cells = np.zeros((h // cell, w // cell, bins))
    for r in range(h):
        for c in range(w):
            down, right = gradient(image, r, c)
            length = math.hypot(down, right)
            angle = math.degrees(math.atan2(down, right)) % turn
            for i in range(len(cells)):
                for j in range(cells.shape[1]):
                    for k in range(bins):
                        if soft:
                            # These are distances from the centres of cells and bins.
                            dy = abs((r + 0.5) / cell - (i + 0.5))
                            dx = abs((c + 0.5) / cell - (j + 0.5))
                            da = abs(angle / turn * bins - (k + 0.5))
                            weight = max(0, 1 - dy) * max(0, 1 - dx)
                            weight *= max(0, 1 - da) + max(0, 1 - (bins - da))
                        else:
                            weight = (
                                (r // cell == i)
                                * (c // cell == j)
                                * (int(angle / turn * bins) == k)
                            )
                        cells[i, j, k] += weight * length
    return cells / cell**2


def normalise(block, norm):
    v = [float(x) for x in block]
    if norm.startswith("L1"):
        v = [x / (sum(v) + 1e-5) for x in v]
        return [math.sqrt(x) for x in v] if norm == "L1-sqrt" else v
    if norm.startswith("L2"):
        length = math.sqrt(sum(x * x for x in v) + 1e-10)
        v = [x / length for x in v]
        if norm == "L2-Hys":
            v = [min(x, 0.2) for x in v]
            length = math.sqrt(sum(x * x for x in v) + 1e-10)
            v = [x / length for x in v]
    return v


def hog(image, cell, block, bins, norm, signed, soft):
    """Return the features of one image (h, w) or (h, w, 3)."""
    image = image.reshape(*image.shape[:2], -1)
    cells = cell_histograms(image, cell, bins, signed, soft)
    features = []
    for i in range(len(cells) - block + 1):
        for j in range(cells.shape[1] - block + 1):
            part = cells[i : i + block, j : j + block]
            features += normalise(part.ravel(), norm)
    return np.array(features)


def lean_of_moments(image):
    """Return the angle in degrees of one grey image."""
    mass = image.astype(float) - float(image.min())
    total = mass.sum()
    if total == 0:
        return 0.0
    h, w = image.shape
    x0 = sum(mass[r, c] * c for r in range(h) for c in range(w)) / total
    y0 = sum(mass[r, c] * r for r in range(h) for c in range(w)) / total
    xy = yy = 0.0
    for r in range(h):
        for c in range(w):
            xy += mass[r, c] * (c - x0) * (r - y0)
            yy += mass[r, c] * (r - y0) ** 2
    return math.degrees(math.atan2(-xy, yy)) if yy > 1e-9 * total else 0.0


def sheared(image, degrees):
    """Shift the rows of one grey image, linearly interpolated, about its centre."""
    mass = image - image.min()
    h, w = image.shape
    y0 = sum(mass[r].sum() * r for r in range(h)) / mass.sum()
    out = np.full((h, w), float(image.min()))
    for r in range(h):
        shift = -math.tan(math.radians(degrees)) * (r - y0)
        for c in range(w):
            left = math.floor(c + shift)
            part = c + shift - left
            a = image[r, left] if 0 <= left < w else image.min()
            b = image[r, left + 1] if 0 <= left + 1 < w else image.min()
            out[r, c] = (1 - part) * a + part * b
    return out


def resampled(line, size):
    """Resample a line of pixels by triangles."""
    step = len(line) / size
    spread = max(step, 1.0)
    out = []
    for j in range(size):
        centre = (j + 0.5) * step - 0.5
        weights = [max(0.0, 1 - abs(i - centre) / spread) for i in range(len(line))]
        total = sum(w * float(x) for w, x in zip(weights, line, strict=True))
        out.append(total / sum(weights))
    return np.array(out)


def trimmed(image, size):
    """Crop one grey image to the box of its pixels > 0, and resize it to ``size``."""
    rows = [r for r in range(len(image)) if (image[r] > 0).any()]
    columns = [c for c in range(image.shape[1]) if (image[:, c] > 0).any()]
    cut = image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    tall = np.array([resampled(column, size[0]) for column in cut.T]).T
    return np.array([resampled(row, size[1]) for row in tall])


def stroke(degrees, width, length, size, shift=(0.0, 0.0)):
    """Draw a straight stroke that leans to the right, with soft edges."""
    a = math.radians(degrees)
    y, x = np.mgrid[:size, :size] - (size - 1) / 2
    x, y = x - shift[0], y - shift[1]
    across = abs(x * math.cos(a) + y * math.sin(a))
    along = abs(y * math.cos(a) - x * math.sin(a))
    return np.clip((width + 1) / 2 - across, 0, 1) * np.clip(
        (length + 1) / 2 - along, 0, 1
    )

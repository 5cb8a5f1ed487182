"""The results of the image transformers, computed by plain loops for tiny images."""

import math
import struct

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


def random_numbers(seed, values):
    """Yield numbers between -1 and 1 by SplitMix64, from a hash of the values."""
    word = 2**64 - 1
    stride = 0x9E3779B97F4A7C15

    def mixed(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & word
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & word
        return z ^ (z >> 31)

    state = seed * stride & word
    for value in values:
        (bits,) = struct.unpack("<Q", struct.pack("<d", float(value)))
        state = (state ^ bits ^ (bits >> 32)) * 0x100000001B3 & word
    state = mixed(state)
    while True:
        state = state + stride & word
        yield 2 * (mixed(state) >> 11) / 2**53 - 1


def smooth_noise(numbers, h, w, deviation):
    """Return white noise of variance 1, smoothed by a Gaussian that keeps it so."""
    reach = math.ceil(3 * deviation)
    bell = [math.exp(-0.5 * (k / deviation) ** 2) for k in range(-reach, reach + 1)]
    length = math.sqrt(sum(b * b for b in bell))
    size = (h + 2 * reach, w + 2 * reach)
    noise = [
        [math.sqrt(3) * next(numbers) for _ in range(size[1])] for _ in range(size[0])
    ]
    field = np.zeros((h, w))
    for r in range(h):
        for c in range(w):
            for i, a in enumerate(bell):
                for j, b in enumerate(bell):
                    field[r, c] += a * b / length**2 * noise[r + i][c + j]
    return field


def distorted(image, seed, settings):
    """Return a distorted copy of one image (h, w, c)."""
    h, w, n_channels = image.shape
    numbers = random_numbers(seed, image.ravel())
    angle = math.radians(settings["rotation"]) * next(numbers)
    wide = 1 + settings["scale"] * next(numbers)
    high = 1 + settings["scale"] * next(numbers)
    slant = settings["shear"] * next(numbers)
    across = settings["shift"] * next(numbers)
    down = settings["shift"] * next(numbers)
    flipped = next(numbers) < 2 * settings["mirror"] - 1
    fields = [np.zeros((h, w))] * 2
    if settings["elastic"]:
        fields = [
            settings["elastic"]
            / math.sqrt(2)
            * smooth_noise(numbers, h, w, settings["smoothness"])
            for _ in range(2)
        ]
    turn = np.array(
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    )
    matrix = turn @ np.array([[wide, slant], [0, high]])
    out = np.empty(image.shape)
    for r in range(h):
        for c in range(w):
            x, y = c - (w - 1) / 2, r - (h - 1) / 2
            column, row = matrix @ [-x if flipped else x, y]
            column += (w - 1) / 2 + across + fields[0][r, c]
            row += (h - 1) / 2 + down + fields[1][r, c]
            row, column = min(max(row, 0), h - 1), min(max(column, 0), w - 1)
            for k in range(n_channels):
                out[r, c, k] = sum(
                    max(0, 1 - abs(row - i))
                    * max(0, 1 - abs(column - j))
                    * float(image[i, j, k])
                    for i in range(h)
                    for j in range(w)
                )
    return out


def normalised(patch, contrast):
    values = [float(v) for v in patch]
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    return [(v - mean) / math.sqrt(variance + contrast) for v in values]


def patch_features(image, size, regions, threshold, fitted):
    """Return the pooled features of one image (h, w, c); ``fitted`` has the rest."""
    h, w = image.shape[0] - size + 1, image.shape[1] - size + 1
    k = len(fitted.directions_)
    sums = np.zeros((regions, regions, 2, k))
    counts = np.zeros((regions, regions))
    for r in range(h):
        for c in range(w):
            patch = image[r : r + size, c : c + size].ravel()
            x = np.array(normalised(patch, fitted.contrast_)) - fitted.mean_
            white = fitted.whitening_ @ x
            place = r * regions // h, c * regions // w
            counts[place] += 1
            for j, direction in enumerate(fitted.directions_):
                z = sum(
                    float(a) * float(b) for a, b in zip(direction, white, strict=True)
                )
                sums[(*place, 0, j)] += max(z - threshold, 0)
                sums[(*place, 1, j)] += max(-z - threshold, 0)
    return sums, counts


def colour_histogram(image, levels, regions, low, high):
    """Return fractions (regions, regions, colours); ``image`` is (h, w, c)."""
    h, w, channels = image.shape
    counts = np.zeros((regions, regions, levels**channels))
    for r in range(h):
        for c in range(w):
            colour = 0
            for k in range(channels):
                share = (float(image[r, c, k]) - low) / (high - low)
                level = min(levels - 1, max(0, math.floor(levels * share)))
                colour = levels * colour + level
            counts[r * regions // h, c * regions // w, colour] += 1
    return counts / counts.sum(axis=-1, keepdims=True)

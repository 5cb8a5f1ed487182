"""The text form of kernels."""

import re

import numpy as np
import pytest

from mercer.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Cosine,
    Custom,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    parse,
)
from mercer.kernels.expression import KERNELS, KernelSyntaxError, to_text

r, k = RBF(gamma=2), Linear()

READ = {
    "linear": Linear(),
    "linear()": Linear(),
    "poly(degree=2, gamma=0.5, coef0=-1.5)": Polynomial(2, 0.5, -1.5),
    "polynomial(degree=4)": Polynomial(4),
    "rbf": RBF(),
    "rbf(gamma=2)": r,
    "rbf(gamma=2,)": r,
    "rbf(gamma=2.)": r,
    "rbf(gamma=.5e-3)": RBF(gamma=5e-4),
    "rbf(sigma=7)": RBF(sigma=7),
    "rbf(gamma=scale)": RBF(gamma="scale"),
    "rbf(gamma='auto')": RBF(gamma="auto"),
    'laplacian(gamma="scale")': Laplacian("scale"),
    "sigmoid(coef0=1)": Sigmoid(coef0=1),
    "cosine": Cosine(),
    "additive_chi2": AdditiveChi2(),
    "chi2(gamma=1E2)": Chi2(100),
    "intersection": Intersection(),
    "linear + rbf(gamma=2)": k + r,
    "linear + linear + rbf(gamma=2)": (k + k) + r,
    "linear + (linear + rbf(gamma=2))": k + (k + r),
    "linear + linear * rbf(gamma=2)": k + (k * r),
    "linear * linear + rbf(gamma=2)": (k * k) + r,
    "(linear + linear) * rbf(gamma=2)": (k + k) * r,
    "linear * rbf(gamma=2) ** 2": k * (r**2),
    "(linear * rbf(gamma=2)) ** 2": (k * r) ** 2,
    "(linear ** 2) ** 3": (k**2) ** 3,
    "0.5 * rbf(gamma=2)": 0.5 * r,
    "rbf(gamma=2) * 0.5": 0.5 * r,
    "2 * 3 * linear": 6 * k,
    "2 * (3 * linear)": 2 * (3 * k),
    "(2) * linear": 2 * k,
    "0.5 * rbf(gamma=2) * linear": (0.5 * r) * k,
    "0.5 * linear + 2 * rbf(gamma=2)": 0.5 * k + 2 * r,
    "3 * linear ** 2": 3 * (k**2),
    "linear@raw": k.on("raw"),
    "linear@'my view'": k.on("my view"),
    "linear ** 2": k**2,
    "linear@raw ** 2": k.on("raw") ** 2,
    "2 * linear@raw": 2 * (k.on("raw")),
    "linear + linear@raw": k + k.on("raw"),
    "rbf(gamma=2)@[0:784]": r.on(slice(0, 784)),
    "linear@[:3]": k.on(slice(None, 3)),
    "linear@[3:]": k.on(slice(3, None)),
    "linear@[:]": k.on(slice(None)),
    "linear@[-4:-1:2]": k.on(slice(-4, -1, 2)),
    "linear@[::2]": k.on(slice(None, None, 2)),
    "linear@[0,3,5]": k.on([0, 3, 5]),
    "linear@[-1]": k.on([-1]),
    "(linear + rbf(gamma=2))@hog": (k + r).on("hog"),
    "linear@a@b": k.on("a").on("b"),
    "linear.normalized()": k.normalized(),
    "linear@raw.normalized()": k.on("raw").normalized(),
    "linear.normalized()@raw": k.normalized().on("raw"),
    "(linear ** 2).normalized() ** 3": (k**2).normalized() ** 3,
    "  linear\n + rbf( gamma = 2 ) @ hog ": k + r.on("hog"),
    "rbf(sigma=7)@raw * (rbf(sigma=4)@hog + linear@hog)": RBF(sigma=7).on("raw")
    * (RBF(sigma=4).on("hog") + k.on("hog")),
}


@pytest.mark.parametrize(("text", "kernel"), READ.items())
def test_reading_and_writing(text, kernel):
    assert parse(text).key() == kernel.key()
    assert parse(to_text(kernel)).key() == kernel.key()


def test_written_forms():
    assert to_text((k + r) * (2 * k.on("raw"))) == (
        "(linear + rbf(gamma=2)) * (2 * linear@raw)"
    )
    assert to_text(Polynomial(degree=2, coef0=1.0)) == "poly(coef0=1.0, degree=2)"
    assert to_text(RBF(gamma=np.float32(0.5)) * np.float64(0.1)) == (
        "0.1 * rbf(gamma=0.5)"
    )
    assert to_text(RBF(gamma="auto").on(slice(0, 3))) == "rbf(gamma=auto)@[0:3]"
    assert to_text(k.on(np.array([True, False, True]))) == "linear@[0, 2]"
    gamma = 0.1 + 0.2
    assert parse(to_text(RBF(gamma))).gamma == gamma


def test_every_kernel_is_read():
    for name, kind in KERNELS.items():
        assert type(parse(name)) is kind
        assert type(parse(to_text(kind()))) is kind


@pytest.mark.parametrize("kernel", [Custom(np.dot), k + Precomputed(), Kernel()])
def test_what_has_no_text(kernel):
    with pytest.raises(ValueError, match=r"(Custom|Precomputed|Kernel) has no text"):
        to_text(kernel)


@pytest.mark.parametrize("kernel", [-1 * k, k**0, k**0.5, RBF(-1), RBF(np.nan)])
def test_invalid_kernels_are_not_written(kernel):
    with pytest.raises(KernelSyntaxError):
        to_text(kernel)


def test_views():
    views = {"raw": slice(0, 784), "hog": [784, 785], "my view": slice(3)}
    kernel = parse("linear@raw + linear@hog * linear@'my view'", views=views)
    expected = k.on(slice(0, 784)) + k.on([784, 785]) * k.on(slice(3))
    assert kernel.key() == expected.key()


KNOWN = "linear, polynomial, poly, rbf, laplacian, sigmoid, cosine, additive_chi2"
FOLLOWS = "Expected '+', '*', '**', '@' or '.normalized()', found "

# Text, column, message.
MISTAKES = [
    ("", 1, f"Expected a kernel. Known: {KNOWN}"),
    ("   ", 1, "Expected a kernel. Known: "),
    ("rfb(gamma=2)", 1, f"Unknown kernel 'rfb'. Did you mean 'rbf'? Known: {KNOWN}"),
    ("linear + Linear", 10, "Unknown kernel 'Linear'. Did you mean 'linear'?"),
    ("linear + xyzzy", 10, "Unknown kernel 'xyzzy'. Known: "),
    ("rbf(gama=2)", 5, "Unknown parameter 'gama'. rbf takes gamma, sigma."),
    ("linear(gamma=2)", 8, "Unknown parameter 'gamma'. linear takes no parameters."),
    ("rbf(2)", 5, "Unknown parameter '2'. rbf takes gamma, sigma."),
    ("rbf(gamma=1, gamma=2)", 14, "The parameter 'gamma' is given twice."),
    ("rbf(gamma 2)", 11, "Expected '=', found '2'."),
    ("rbf(gamma=)", 11, "Expected a number, found ')'."),
    ("rbf(sigma=scale)", 11, "Expected a number, found 'scale'."),
    ("rbf(gamma=1 sigma=2)", 13, "Expected ')' or ',', found 'sigma'."),
    ("linear * rbf(gamma=-1)", 10, "gamma must be a finite number >= 0, 'scale' or"),
    ("rbf(gamma=wide)", 1, "gamma must be a finite number >= 0, 'scale' or 'auto'"),
    ("rbf(gamma=1e999)", 11, "The number 1e999 is too large."),
    ("rbf(gamma=1, sigma=1)", 1, "RBF takes gamma or sigma, not both"),
    ("poly(degree=2.5)", 1, "degree must be a whole number >= 0, got 2.5."),
    ("linear@depth", 8, "Unknown column or view 'depth'. Known: hog, raw."),
    ("linear@", 8, "Expected a column's or view's name or '[', found the end."),
    ("linear@3", 8, "Expected a column's or view's name or '[', found '3'."),
    ("linear@[]", 9, "Expected a number, found ']'."),
    ("linear@[1,]", 11, "Expected a number, found ']'."),
    ("linear@[1.5]", 9, "A column is a whole number, not 1.5."),
    ("linear@[1 2]", 11, "Expected ']', ',' or ':', found '2'."),
    ("linear@[1:2,3]", 12, "Expected ']', found ','."),
    ("linear@[0:3", 12, "Expected ']', found the end."),
    ("(linear + rbf", 1, "This '(' is never closed."),
    ("linear * (rbf + (linear)", 10, "This '(' is never closed."),
    ("rbf(gamma=2", 4, "This '(' is never closed."),
    ("rbf(", 4, "This '(' is never closed."),
    ("linear)", 7, "This ')' was never opened."),
    ("(linear rbf)", 9, "Expected ')', '+', '*', '**', '@' or '.normalized()', found"),
    ("linear rbf", 8, FOLLOWS + "'rbf'."),
    ("linear 2", 8, FOLLOWS + "'2'."),
    ("-0.5 * rbf", 1, "A factor must be >= 0: other multiples are not kernels."),
    ("linear * -1", 10, "A factor must be >= 0"),
    ("linear - rbf", 8, "Kernels can be added, not subtracted."),
    ("(linear - rbf)", 9, "Kernels can be added, not subtracted."),
    ("linear +", 9, "Expected a kernel or a number, found the end."),
    ("linear +  ", 9, "Expected a kernel or a number, found the end."),
    ("+ linear", 1, "Expected a kernel or a number, found '+'."),
    ("linear * * rbf", 10, "Expected a kernel or a number, found '*'."),
    ("()", 2, "Expected a kernel or a number, found ')'."),
    ("2", 1, "The number 2 can only multiply a kernel."),
    ("2 + linear", 1, "The number 2 can only multiply a kernel."),
    ("linear + 0.5", 10, "The number 0.5 can only multiply a kernel."),
    ("2@raw", 1, "The number 2 can only multiply a kernel."),
    ("2 ** 2 * linear", 1, "The number 2 can only multiply a kernel."),
    ("linear ** 0", 11, "Expected a whole exponent >= 1, found '0'."),
    ("linear ** 0.5", 11, "Expected a whole exponent >= 1, found '0.5'."),
    ("linear ** rbf", 11, "Expected a whole exponent >= 1, found 'rbf'."),
    ("linear ** 2 ** 3", 13, "A power of a power needs parentheses."),
    ("linear.squared()", 8, "Expected 'normalized()', found 'squared'."),
    ("linear.normalized", 18, "Expected '(', found the end."),
    ("linear.normalized(2)", 19, "Expected ')', found '2'."),
    ("linear / 2", 8, "Unexpected character '/'."),
    ("rbf(gamma='scale)", 11, "This quotation mark is never closed."),
]


@pytest.mark.parametrize(("text", "column", "message"), MISTAKES)
def test_mistakes_show_where(text, column, message):
    with pytest.raises(KernelSyntaxError, match="^" + re.escape(message)) as raised:
        parse(text, views={"raw": [0], "hog": [1]})
    first, shown, caret = str(raised.value).split("\n")
    assert first.endswith(f"At column {column} of the kernel:")
    assert shown == "  " + text
    assert caret == " " * (column + 1) + "^"


def test_the_caret_stands_below_text_of_several_lines():
    with pytest.raises(KernelSyntaxError) as raised:
        parse("linear\n\t+ rfb")
    _, shown, caret = str(raised.value).split("\n")
    assert shown[caret.index("^") :] == "rfb"

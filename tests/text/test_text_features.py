"""Features of texts, against scikit-learn's own TF-IDF and against the definitions."""

from __future__ import annotations

import copy
import math
import pickle
import re
import tracemalloc
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.utils import estimator_checks as checks

from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.text import TextFeatures, counting
from locole.text.texts import folded, word_pattern

TEXTS = [
    "The cat sat on the mat, the mat!",
    "a dog; a DOG and a cat",
    "Größe und Straße",
    "наш кот спит",
    "सत्य की जीत हुई",
    "全文検索は難しい",
    "",
    "...",
]
ANALYZERS = ["word", "char", "both"]
GOLDEN = Path(__file__).parents[1] / "io" / "golden"

each_analyzer = pytest.mark.parametrize("analyzer", ANALYZERS)
each_size = pytest.mark.parametrize("n_features", [None, 64])


def reference(analyzer, ngrams, **options):
    return TfidfVectorizer(
        analyzer="word" if analyzer == "word" else "char_wb",
        ngram_range=ngrams,
        preprocessor=folded,
        token_pattern=word_pattern() if analyzer == "word" else None,
        sublinear_tf=True,
        dtype=np.float32,
        **options,
    )


def unit_rows(X):
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize(("analyzer", "ngrams"), [("word", (1, 2)), ("char", (2, 4))])
def test_one_analyzer_is_scikit_learns(analyzer, ngrams):
    ours, theirs = TextFeatures(analyzer), reference(analyzer, ngrams)
    X, Y = ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS)
    np.testing.assert_array_equal(X.toarray(), Y.toarray())
    names = [f"{analyzer}__{term}" for term in theirs.get_feature_names_out()]
    assert ours.get_feature_names_out().tolist() == names
    new = ["the cat and a new dog", "кот"]
    np.testing.assert_array_equal(ours.transform(new).toarray(), theirs.transform(new).toarray())


@pytest.mark.parametrize("ngrams", [(1, 1), (2, 3), (3, 3), (1, 5)])
@pytest.mark.parametrize("block", ["word", "char"])
@pytest.mark.parametrize("min_df", [1, 3])
def test_counts_are_scikit_learns_to_the_bit(block, ngrams, min_df, monkeypatch):
    """Runs of any length, also across blocks of texts, and words that come again and again."""
    monkeypatch.setattr(counting, "_BLOCK_WORDS", 20)
    rng = np.random.default_rng(0)
    words = ["a", "B", "कि", "cats", "\x1c", "ab\u3000ba"]
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(0, 12, 40)]
    options = {"word_ngrams": ngrams, "char_ngrams": ngrams, "min_df": min_df, "n_features": None}
    ours, theirs = (
        counting.make_vectorizer(block, block, lowercase=True, **options) for _ in range(2)
    )
    X, Y = counting.count(ours, texts), theirs.fit_transform(texts)
    Y.sort_indices()
    assert ours.vocabulary_ == theirs.vocabulary_
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(Y, name), strict=True)


@given(texts=st.lists(st.text("abAß 全.", max_size=20), max_size=5))
def test_words_and_characters_count_by_their_tfidf(texts):
    """A row is the TF-IDF of all its terms, as scikit-learn has it, scaled once."""
    texts = [*TEXTS, *texts]
    ours = TextFeatures("both")
    X = ours.fit_transform(texts).toarray()
    words = reference("word", (1, 2), norm=None)
    grams = reference("char", (2, 4), norm=None)
    W, G = words.fit_transform(texts).toarray(), grams.fit_transform(texts).toarray()
    np.testing.assert_allclose(X, unit_rows(np.hstack([W, G])), atol=1e-6)
    assert ours.n_columns_ == W.shape[1] + G.shape[1] == len(ours.get_feature_names_out())
    new = ["the cat and an unknown dog", "кот", "unknown"]
    W, G = words.transform(new).toarray(), grams.transform(new).toarray()
    np.testing.assert_allclose(
        ours.transform(new).toarray(), unit_rows(np.hstack([W, G])), atol=1e-6
    )


def test_hashed_words_and_characters_count_by_their_tfidf():
    X = TextFeatures("both", n_features=2**16).fit_transform(TEXTS).toarray()
    hashed = [
        HashingVectorizer(
            analyzer="word" if block == "word" else "char_wb",
            ngram_range=ngrams,
            preprocessor=folded,
            token_pattern=word_pattern() if block == "word" else None,
            n_features=2**15,
            alternate_sign=False,
            norm=None,
        )
        for block, ngrams in (("word", (1, 2)), ("char", (2, 4)))
    ]
    weights = TfidfTransformer(sublinear_tf=True)
    expected = weights.fit_transform(sp.hstack([h.fit_transform(TEXTS) for h in hashed]))
    np.testing.assert_allclose(X, expected.toarray(), atol=1e-6)


def test_rows_of_an_old_file_are_as_they_were(tmp_path):
    """Words and characters are scaled separately first; so they are when it is saved again and grows."""
    old = read_model(GOLDEN / "format2" / "texts").features_
    assert old.scaling_ is None
    write_model(tmp_path / "m", old)
    new = ["it purrs and barks", "мурлычет", "?!"]
    words, grams = reference("word", (1, 2)), reference("char", (2, 4))
    for block, vectorizer in (("word", words), ("char", grams)):
        vectorizer.vocabulary = old.terms_[block].tolist()
        vectorizer.fit([""])
        vectorizer.idf_ = old.idf_[block]
    W, G = words.transform(new).toarray(), grams.transform(new).toarray()
    expected = unit_rows(np.hstack([W, G]))
    for features in (old, read_model(tmp_path / "m")):
        np.testing.assert_allclose(features.transform(new).toarray(), expected, atol=1e-6)
        # Half of a row each, also with terms that came later.
        row = features.partial_fit(["it moos"]).transform(["it moos"])
        names = features.get_feature_names_out()[row.indices]
        is_word = np.array([name.startswith("word__") for name in names])
        assert (row.data[is_word] ** 2).sum() == pytest.approx(0.5, rel=1e-5)
        assert features.scaling_ is None
    assert old.fit(TEXTS).scaling_ == "row"


@pytest.mark.parametrize(
    ("scaling", "part"), [("rows", "unknown way"), ("", "unknown way"), (1, "is a int")]
)
def test_a_file_with_another_scaling_is_refused(tmp_path, scaling, part):
    features = TextFeatures("both").fit(TEXTS)
    features.scaling_ = scaling
    write_model(tmp_path / "m", features)
    with pytest.raises(ModelFileError, match=part):
        read_model(tmp_path / "m")


def test_weights_follow_the_formula():
    features = TextFeatures("word", word_ngrams=(1, 1))
    X = features.fit_transform(["b a a a", "b", "c"]).toarray()
    idf = {"a": 1 + math.log(4 / 2), "b": 1 + math.log(4 / 3)}
    row = np.array([(1 + math.log(3)) * idf["a"], idf["b"], 0])
    np.testing.assert_allclose(X[0], row / np.linalg.norm(row), rtol=1e-6)


@each_analyzer
@each_size
@given(texts=st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_rows_have_unit_length_and_small_types(analyzer, n_features, texts):
    features = TextFeatures(analyzer, n_features=n_features)
    X = features.fit_transform(["some words", *texts])
    assert isinstance(X, sp.csr_matrix)
    assert X.dtype == np.float32
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.shape == (len(texts) + 1, features.n_columns_)
    assert X.has_canonical_format
    norms = np.linalg.norm(X.toarray(), axis=1)
    assert all(np.isclose(norms, 1, atol=1e-5) | (norms == 0))
    again = features.transform(["some words", *texts])
    np.testing.assert_array_equal(again.toarray(), X.toarray())
    grown = features.partial_fit([*texts, "words to come"]).transform(
        [*texts, "some words to come"]
    )
    norms = np.linalg.norm(grown.toarray(), axis=1)
    assert all(np.isclose(norms, 1, atol=1e-5) | (norms == 0))


@each_analyzer
@each_size
def test_a_loaded_transformer_gives_the_same_bits(analyzer, n_features, tmp_path):
    before = TextFeatures(analyzer, n_features=n_features, min_df=1).fit(TEXTS)
    write_model(tmp_path / "m", before)
    after = read_model(tmp_path / "m")
    new = [*TEXTS, "a cat and something new", "नया सत्य"]
    X, Y = before.transform(new), after.transform(new)
    for name in ("data", "indices", "indptr"):
        assert getattr(X, name).tobytes() == getattr(Y, name).tobytes()
    assert repr(before) == repr(after)
    assert before.analyzer_reason_ == after.analyzer_reason_
    assert before.get_feature_names_out().tolist() == after.get_feature_names_out().tolist()


def test_parameters_set_after_fit_do_not_change_what_was_learnt(tmp_path):
    features = TextFeatures("word").fit(TEXTS)
    expected = features.transform(TEXTS).toarray()
    features.set_params(lowercase=False, word_ngrams=(1, 1), n_features=8)
    np.testing.assert_array_equal(features.transform(TEXTS).toarray(), expected)
    write_model(tmp_path / "m", features)
    loaded = read_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(TEXTS).toarray(), expected)
    assert loaded.n_features == 8


# --- words and characters of the world ---


def test_words_are_whole_in_scripts_with_marks():
    words = re.findall(
        word_pattern(), "सत्य की जीत, ประเทศไทย की؟ naïve cafe\u0301 user_id می\u200cخواهم"
    )
    expected = ["सत्य", "की", "जीत", "ประเทศไทย", "की", "naïve", "cafe\u0301", "user_id"]
    assert words == [*expected, "می\u200cخواهم"]


def test_the_pattern_takes_every_mark_and_letter():
    pattern = re.compile(word_pattern())
    for code in range(0x10000):
        kind = unicodedata.category(chr(code))
        if kind[0] in "LM" or kind == "Nd":
            assert pattern.fullmatch(chr(code)), hex(code)
        elif kind[0] in "PSZ" and chr(code) != "_" and not chr(code).isalnum():
            assert kind == "Pc" or not pattern.fullmatch(chr(code)), hex(code)


def test_ways_to_write_the_same_make_no_difference():
    features = TextFeatures("both").fit(["Straße café ﬁle", "other"])
    X = features.transform(["STRASSE cafe\u0301 file", "Straße café ﬁle"]).toarray()
    np.testing.assert_array_equal(X[0], X[1])
    apart = TextFeatures("word", lowercase=False).fit(["US us", "other"])
    assert {"word__US", "word__us"} <= set(apart.get_feature_names_out())


@pytest.mark.parametrize(
    ("texts", "chosen", "reason"),
    [
        (["short text"] * 3, "both", "short"),
        (["a long text with blanks " * 20] * 3, "word", "long enough"),
        (["全文検索は難しい。" * 40] * 3, "both", "not set apart"),
        ([""], "both", "short"),
    ],
)
def test_auto_says_what_it_chose_and_why(texts, chosen, reason):
    features = TextFeatures().fit(["x", *texts] if texts == [""] else texts)
    assert features.analyzer_ == chosen
    assert reason in features.analyzer_reason_


def test_an_analyzer_without_terms_is_left_out(tmp_path):
    features = TextFeatures("both").fit(["!!", "??"])
    assert list(features.idf_) == ["char"]
    write_model(tmp_path / "m", features)
    loaded = read_model(tmp_path / "m")
    np.testing.assert_array_equal(
        loaded.transform(["!!"]).toarray(), features.transform(["!!"]).toarray()
    )


# --- input ---


@pytest.mark.parametrize(
    "texts",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object),
        pd.Series(TEXTS, index=range(8)),
        pd.DataFrame({"text": TEXTS}),
        np.array(TEXTS)[:, None],
    ],
)
def test_lists_of_every_kind(texts):
    expected = TextFeatures("word").fit_transform(TEXTS).toarray()
    np.testing.assert_array_equal(TextFeatures("word").fit_transform(texts).toarray(), expected)


@pytest.mark.parametrize(
    ("texts", "part"),
    [
        ("one text", "not a single str: put it in a list"),
        (b"bytes", "not a single bytes"),
        ([b"bytes"], "number 0 is b'bytes' of type bytes, not a str: decode it first"),
        (["a", None], "number 1 is None of type NoneType"),
        (["a", 5], "number 1 is 5 of type int"),
        (["a", float("nan")], "number 1 is nan of type float"),
        (["a", ["b"]], "of type list"),
        ([np.zeros(1000)], "of type ndarray"),
        (np.array([["a", "b"]]), "one column of them, not a ndarray"),
        (pd.DataFrame({"title": ["a"], "text": ["b"]}), "not a DataFrame"),
        ({"a": 1}, "not a dict"),
        ({"a"}, "not a set"),
        ((t for t in "ab"), "not a generator"),
        (None, "not a NoneType"),
        (5, "not a int"),
        ([], "0 texts"),
        (np.array([1.0, 2.0]), "of type float64"),
    ],
)
def test_what_is_no_text_is_refused(texts, part):
    with pytest.raises(LocoleError, match=part):
        TextFeatures("word").fit(texts)
    fitted = TextFeatures("word").fit(TEXTS)
    with pytest.raises(LocoleError, match=part) as caught:
        fitted.transform(texts if not hasattr(texts, "send") else (t for t in "ab"))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            {"analyzer": "sentence"},
            "analyzer must be 'auto', 'both', 'char' or 'word', not 'sentence'",
        ),
        ({"word_ngrams": 2}, "word_ngrams must be"),
        ({"char_ngrams": (4, 2)}, "char_ngrams must be"),
        ({"char_ngrams": (0, 2)}, "char_ngrams must be"),
        ({"word_ngrams": (1.0, 2)}, "word_ngrams must be"),
        ({"min_df": 0}, "min_df must be"),
        ({"min_df": 0.5}, "min_df must be"),
        ({"n_features": 1}, "n_features must be"),
        ({"n_features": True}, "n_features must be"),
        ({"n_features": 2**31}, "n_features must be"),
        ({"analyzer": "word", "min_df": 9}, "no term is left"),
    ],
)
def test_bad_parameters_are_refused(options, part):
    with pytest.raises(LocoleError, match=part):
        TextFeatures(**options).fit(TEXTS)


def test_texts_without_words_are_refused_with_a_way_out():
    with pytest.raises(LocoleError, match="analyzer='both'"):
        TextFeatures("word").fit(["!!", ""])


def test_min_df_leaves_rare_terms_out():
    features = TextFeatures("word", min_df=2, word_ngrams=(1, 1)).fit(["a b", "b c"])
    assert features.get_feature_names_out().tolist() == ["word__b"]


def test_an_unfitted_transformer_says_so():
    with pytest.raises(NotFittedError):
        TextFeatures().transform(TEXTS)


def test_copies():
    features = TextFeatures("both", n_features=32).fit(TEXTS)
    assert repr(clone(features)) == repr(features)
    assert not hasattr(clone(features), "idf_")
    copied = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(
        copied.transform(TEXTS).toarray(), features.transform(TEXTS).toarray()
    )


def test_texts_are_not_copied():
    """Two million characters go by, but no second copy of them exists at any time."""
    texts = [f"{'word ' * 2000}{i}" for i in range(200)]
    tracemalloc.start()
    try:
        TextFeatures("word", word_ngrams=(1, 1)).fit(texts)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "check",
    [
        checks.check_no_attributes_set_in_init,
        checks.check_parameters_default_constructible,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_estimator_cloneable,
        checks.check_estimator_repr,
        checks.check_valid_tag_types,
    ],
)
def test_scikit_learns_checks(check):
    """Those that need no data: scikit-learn has none for estimators of texts."""
    check("TextFeatures", TextFeatures())


def test_a_vocabulary_with_a_term_twice_is_refused(tmp_path):
    features = TextFeatures("word").fit(TEXTS)
    features.terms_["word"][1] = features.terms_["word"][0]
    write_model(tmp_path / "m", features)
    with pytest.raises(LocoleError, match="a term twice"):
        read_model(tmp_path / "m").transform(TEXTS)


@pytest.mark.parametrize("analyzer", ["word", "char", "both"])
def test_terms_that_come_later_get_the_weights_of_all_texts(analyzer):
    """Those of a fit to all texts; known terms keep theirs, and rows of known terms their entries."""
    first, later = ["red apple", "green apple", "a red car"], ["blue car", "blue sky, red"]
    grown = TextFeatures(analyzer, word_ngrams=(1, 1)).fit(first)
    before = grown.transform(first)
    names = grown.get_feature_names_out()
    grown.partial_fit(later[:1]).partial_fit(later[1:])
    again = TextFeatures(analyzer, word_ngrams=(1, 1)).fit([*first, *later])
    every = grown.get_feature_names_out()
    assert set(every) == set(again.get_feature_names_out())
    np.testing.assert_array_equal(every[: names.size], names)
    after = grown.transform(first)
    assert after.has_sorted_indices
    assert (after[:, : names.size] != before).nnz == 0
    assert after[:, names.size :].nnz == 0
    assert grown.n_texts_ == 5
    last = TextFeatures("word", word_ngrams=(1, 1)).fit(first).partial_fit(later)
    weight = dict(zip(last.terms_["word"], last.idf_["word"], strict=True))
    expected = TextFeatures("word", word_ngrams=(1, 1)).fit([*first, *later])
    expected = dict(zip(expected.terms_["word"], expected.idf_["word"], strict=True))
    for term in ("blue", "sky"):
        assert weight[term] == pytest.approx(expected[term], rel=1e-6)
    row = grown.transform(["sky"])
    assert "sky" in str(every[row.indices].tolist())


def test_an_old_file_tells_how_many_texts_there_were():
    features = TextFeatures("word", word_ngrams=(1, 1)).fit(["a b", "b c", "c d", "b"])
    features.n_texts_ = None
    assert features._n_texts() == 4


def test_a_file_that_lies_about_terms_that_came_later_is_refused(tmp_path):
    features = TextFeatures("both").fit(["red apple"]).partial_fit(["blue car"])
    for wrong in (
        features.grown_[:1],
        features.grown_[:, :1],
        features.grown_.astype(np.float64),
        np.vstack([features.grown_, [-1, 1]]),
        features.grown_[::-1] + 1,
    ):
        other = copy.copy(features)
        other.grown_ = wrong
        write_model(tmp_path / "m", other)
        with pytest.raises(ModelFileError, match="terms and their weights"):
            read_model(tmp_path / "m")


@pytest.mark.parametrize("settings", [{}, {"n_features": 64}], ids=["vocabulary", "hashed"])
def test_names_of_some_columns_are_those_of_all(settings):
    features = TextFeatures("both", **settings).fit(["red apple", "green apple"])
    features.partial_fit(["blue plum"]).partial_fit(["a yellow plum"])
    columns = list(range(features.n_columns_))[::-3]
    names = features.get_feature_names_out()[columns].tolist()
    assert features._names_of(columns) == names

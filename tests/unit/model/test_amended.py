"""A mapping with changes reads like a dict with the same changes."""

from kafka_rebalance.model.amended import Amended, amended


class TestAmended:
    def test_it_reads_like_a_dict(self):
        """After each change, whether it is kept beside the whole or merged into it."""
        plain = dict.fromkeys(range(100), 0)
        found = plain
        for value in range(1, 60):
            changed = {value: value, 99 - value: value}
            plain, found = {**plain, **changed}, amended(found, changed)
            assert (dict(found), len(found), list(found)) == (plain, 100, list(plain))
            assert (found[value], found.get(1000), 5 in found, 1000 in found) == (plain[value], None, True, False)

    def test_mappings_that_change_together_are_copied_one_after_the_other(self):
        """Each from its own part of the whole on, and again after that."""
        copied = {20: [], 40: []}
        found = {share: dict.fromkeys(range(400), 0) for share in copied}
        for key in range(60):
            for share, before in found.items():
                found[share] = amended(before, {key: 1}, share)
                if not isinstance(found[share], Amended):
                    copied[share].append(key + 1)
        assert copied == {20: [20, 40, 60], 40: [10, 20, 30, 40, 50, 60]}

    def test_the_value_before_stays(self):
        """Nobody writes to it."""
        before = amended(dict.fromkeys(range(100), "a"), {1: "b"})
        after = amended(before, {1: "c", 2: "d"})
        assert isinstance(after, Amended)
        assert (before[1], before[2], after[1], after[2]) == ("b", "a", "c", "d")

    def test_new_keys_stand_at_the_end(self):
        """As in a dict, whether they are kept beside the whole or merged into it."""
        plain = dict.fromkeys(range(100), 0)
        found = plain
        for key in range(1000, 1060):
            changed = {key: key, key - 1: 0}
            plain, found = {**plain, **changed}, amended(found, changed)
            assert (dict(found), len(found), list(found)) == (plain, len(plain), list(plain))
            assert (found[key], key in found, key + 1 in found) == (key, True, False)
        assert isinstance(found, Amended)
